// SPDX-License-Identifier: Apache-2.0
#include "format/array_format.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "format/checksum.h"

namespace feedline::format {
namespace {

// Of each array, so many rows go into the fingerprint: reading all of a mapped terabyte is out of the question.
constexpr std::uint64_t kPrintedRows = 64;
constexpr std::uint64_t kAhead = 8;  // rows that are on their way from memory while one is copied

std::uint64_t fingerprint_of(const std::vector<NamedArray>& arrays) {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("arrays"));
  for (const NamedArray& array : arrays) {
    fingerprint.add(array.name);
    fingerprint.add(name_of(array.row.dtype));
    fingerprint.add(array.row.shape.to_string());
    fingerprint.add(array.rows);
    const std::uint64_t printed = std::min(array.rows, kPrintedRows);
    for (std::uint64_t i = 0; i < printed; ++i) {
      const std::byte* row = array.data + static_cast<std::ptrdiff_t>(i * array.rows / printed) * array.stride;
      fingerprint.add(std::string_view(reinterpret_cast<const char*>(row), array.row.bytes()));
    }
  }
  return fingerprint.value();
}

std::vector<FieldDescription> fields_of(const std::vector<NamedArray>& arrays) {
  std::vector<FieldDescription> fields;
  for (const NamedArray& array : arrays) fields.push_back({array.name, FieldKind::kArray, array.row});
  return fields;
}

}  // namespace

Result<std::shared_ptr<const Format>> ArrayFormat::make(std::vector<NamedArray> arrays) {
  if (arrays.empty()) return config_error("arrays: at least one array is needed");
  std::set<std::string> names;
  for (const NamedArray& array : arrays) {
    if (!names.insert(array.name).second) return config_error("arrays: the name \"" + array.name + "\" comes twice");
    if (array.rows != arrays.front().rows)
      return config_error("arrays: \"" + array.name + "\" has " + std::to_string(array.rows) + " rows, \"" +
                          arrays.front().name + "\" has " + std::to_string(arrays.front().rows));
    if (array.row.bytes() == 0) return config_error("arrays: the rows of \"" + array.name + "\" have no elements");
  }
  if (arrays.front().rows == 0) return config_error("arrays: there are no rows");
  return std::shared_ptr<const Format>(new ArrayFormat(std::move(arrays)));
}

ArrayFormat::ArrayFormat(std::vector<NamedArray> arrays)
    : FilledFormat(fields_of(arrays)), arrays_(std::move(arrays)), fingerprint_(fingerprint_of(arrays_)) {}

Result<std::uint64_t> ArrayFormat::fill(std::span<const std::uint64_t> samples,
                                        std::span<std::byte* const> fields) const {
  for (std::size_t f = 0; f < arrays_.size(); ++f) {
    const NamedArray& array = arrays_[f];
    const std::size_t bytes = array.row.bytes();
    const auto row = [&](std::uint64_t sample) {
      return array.data + static_cast<std::ptrdiff_t>(sample) * array.stride;
    };
    std::byte* out = fields[f];
    for (std::size_t i = 0; i < samples.size(); ++i, out += bytes) {
      if (i + kAhead < samples.size()) __builtin_prefetch(row(samples[i + kAhead]));
      std::memcpy(out, row(samples[i]), bytes);
    }
  }
  return samples.size() * sample_bytes();
}

Where ArrayFormat::where(std::uint64_t index) const {
  Where where;
  where.key = "row " + std::to_string(index);
  where.record = index;
  return where;
}

}  // namespace feedline::format
