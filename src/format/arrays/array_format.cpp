// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/array_format.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/gather_rows.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// Of each array, so many rows go into the fingerprint: reading all of a mapped terabyte is out of the question.
constexpr std::uint64_t kPrintedRows = 64;

std::uint64_t samples_of(const NamedArray& array) {
  return array.offsets.empty() ? array.rows : array.offsets.size() - 1;
}

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
    // which samples stand together in a batch, and whether, is up to their lengths: all of them
    if (!array.offsets.empty()) fingerprint.add(std::as_bytes(std::span(array.offsets)));
  }
  return fingerprint.value();
}

std::vector<FieldDescription> fields_of(const std::vector<NamedArray>& arrays) {
  std::vector<FieldDescription> fields;
  for (const NamedArray& array : arrays) {
    if (array.offsets.empty()) {
      fields.push_back({array.name, FieldKind::kArray, array.row});
      continue;
    }
    fields.push_back({array.name, FieldKind::kArray, {array.row.dtype, array.row.shape.with_front(kAnyLength)}});
    fields.push_back({array.name + "_length", FieldKind::kArray, {DType::kInt64, {}}});
  }
  return fields;
}

// Of a sample of middle length.
std::uint64_t sample_bytes_of(const std::vector<NamedArray>& arrays) {
  std::uint64_t bytes = 0;
  for (const NamedArray& array : arrays)
    bytes += array.offsets.empty() ? array.row.bytes() : array.row.bytes() * array.rows / samples_of(array);
  return bytes;
}

Result<void> check_offsets(const NamedArray& array) {
  const std::string start = "arrays: the offsets of \"" + array.name + "\" ";
  const auto& offsets = array.offsets;
  if (array.row.shape.dims() + 2 > Shape::kMaxDims)  // with the length, and the rows of a batch
    return config_error("arrays: \"" + array.name + "\" has more than " + std::to_string(Shape::kMaxDims) +
                        " extents in a batch");
  if (array.rows > 1 && array.stride != static_cast<std::ptrdiff_t>(array.row.bytes()))
    return config_error("arrays: the rows of \"" + array.name + "\", which is ragged, do not touch; copy it first");
  if (offsets.front() != 0) return config_error(start + "begin at " + std::to_string(offsets.front()) + ", not at 0");
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] < offsets[i])
      return config_error(start + "do not ascend: sample " + std::to_string(i) + " goes from " +
                          std::to_string(offsets[i]) + " to " + std::to_string(offsets[i + 1]));
    if (offsets[i + 1] == offsets[i])
      return config_error("arrays: sample " + std::to_string(i) + " of \"" + array.name + "\" is empty");
  }
  if (static_cast<std::uint64_t>(offsets.back()) != array.rows)
    return config_error(start + "end at " + std::to_string(offsets.back()) + ", but there are " +
                        std::to_string(array.rows) + " rows");
  return {};
}

// Gives the bytes read.
std::uint64_t fill_ragged(const NamedArray& array, std::span<const std::uint64_t> samples, const ArrayView& first,
                          std::int64_t* lengths) {
  const std::size_t bytes = array.row.bytes();
  const auto element_bytes = size_of(array.row.dtype);
  const std::size_t padded_bytes = first.spec.bytes();
  std::byte* out = first.data;
  std::uint64_t read = 0;
  for (const std::uint64_t sample : samples) {
    const std::int64_t begin = array.offsets[sample];
    *lengths = array.offsets[sample + 1] - begin;
    const std::size_t used = static_cast<std::size_t>(*lengths++) * bytes;
    FEEDLINE_CHECK(used <= padded_bytes);
    std::memcpy(out, array.data + static_cast<std::size_t>(begin) * bytes, used);
    fill_elements(out + used, (padded_bytes - used) / element_bytes, array.pad, element_bytes);
    out += padded_bytes;
    read += used;
  }
  return read;
}

}  // namespace

Result<std::shared_ptr<const RowFormat>> ArrayFormat::make(std::vector<NamedArray> arrays) {
  if (arrays.empty()) return config_error("arrays: at least one array is needed");
  const NamedArray& first = arrays.front();
  for (const NamedArray& array : arrays) {
    const auto counted = [](const NamedArray& a) {
      return "\"" + a.name + "\" has " + std::to_string(samples_of(a)) + (a.offsets.empty() ? " rows" : " samples");
    };
    if (samples_of(array) != samples_of(first))
      return config_error("arrays: " + counted(array) + ", " + counted(first));
    if (array.row.bytes() == 0) return config_error("arrays: the rows of \"" + array.name + "\" have no elements");
    if (!array.offsets.empty()) FEEDLINE_CHECK_OK(check_offsets(array));
  }
  std::set<std::string> names;
  for (const FieldDescription& field : fields_of(arrays))
    if (!names.insert(field.name).second) return config_error("arrays: the name \"" + field.name + "\" comes twice");
  if (samples_of(first) == 0) return config_error("arrays: there are no rows");
  return std::shared_ptr<const RowFormat>(new ArrayFormat(std::move(arrays)));
}

ArrayFormat::ArrayFormat(std::vector<NamedArray> arrays)
    : FilledFormat(fields_of(arrays), sample_bytes_of(arrays)),
      arrays_(std::move(arrays)),
      size_(samples_of(arrays_.front())),
      fingerprint_(fingerprint_of(arrays_)) {
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    const auto& offsets = arrays_[a].offsets;
    array_of_.insert(array_of_.end(), offsets.empty() ? 1 : 2, a);
    std::int64_t longest = 0;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) longest = std::max(longest, offsets[i + 1] - offsets[i]);
    longest_.push_back(static_cast<std::uint64_t>(longest));
  }
}

Result<std::uint64_t> ArrayFormat::fill(std::span<const std::uint64_t> samples,
                                        std::span<const ArrayView> first_rows) const {
  std::uint64_t read = 0;
  auto first = first_rows.begin();
  for (const NamedArray& array : arrays_) {
    if (array.offsets.empty()) {
      base::gather_rows({array.data, array.stride, array.row.bytes()}, samples, first->data);
      read += samples.size() * array.row.bytes();
      ++first;
    } else {
      read += fill_ragged(array, samples, first[0], first[1].as<std::int64_t>());
      first += 2;
    }
  }
  return read;
}

std::uint64_t ArrayFormat::length(std::uint64_t index, std::size_t field) const {
  const auto& offsets = arrays_[array_of_[field]].offsets;
  return static_cast<std::uint64_t>(offsets[index + 1] - offsets[index]);
}

Where ArrayFormat::where(std::uint64_t index) const {
  Where where;
  where.key = "row " + std::to_string(index);
  where.record = index;
  return where;
}

}  // namespace feedline::format
