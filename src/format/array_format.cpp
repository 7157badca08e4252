// SPDX-License-Identifier: Apache-2.0
#include "format/array_format.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.h"
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

}  // namespace

std::uint64_t grain_of(std::uint64_t sample_bytes) {
  constexpr std::uint64_t kBytes = 64 << 10;
  constexpr std::uint64_t kMost = 64;
  return std::clamp(kBytes / std::max<std::uint64_t>(sample_bytes, 1), std::uint64_t{1}, kMost);
}

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

ArrayFormat::ArrayFormat(std::vector<NamedArray> arrays) : arrays_(std::move(arrays)) {
  for (const NamedArray& array : arrays_) {
    fields_.push_back({array.name, FieldKind::kArray, array.row});
    row_bytes_ += array.row.bytes();
  }
  grain_ = grain_of(row_bytes_);
  fingerprint_ = fingerprint_of(arrays_);
}

Result<void> ArrayFormat::read(std::uint64_t /*index*/, memory::Record& /*record*/) const {
  FEEDLINE_CHECK(!"arrays are filled, not read");
}

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
  return samples.size() * row_bytes_;
}

Where ArrayFormat::where(std::uint64_t index) const {
  Where where;
  where.key = "row " + std::to_string(index);
  where.record = index;
  return where;
}

Result<Inspection> ArrayFormat::inspect() const {
  return config_error("inspect: arrays hold nothing that a reader could drop or merge");
}

}  // namespace feedline::format
