// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/array_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/gather_rows.h"
#include "format/arrays/named_arrays.h"

namespace feedline::format {
namespace {

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

// Writes the samples, padded to the row's length, and their lengths. Writes only the lengths if `first` has no data.
// Returns the number of bytes read.
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
    if (out == nullptr) continue;
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
  FEEDLINE_CHECK_OK(check_arrays(arrays, [](const NamedArray&) { return false; }));
  FEEDLINE_CHECK_OK(check_names(fields_of(arrays)));
  return std::shared_ptr<const RowFormat>(new ArrayFormat(std::move(arrays)));
}

ArrayFormat::ArrayFormat(std::vector<NamedArray> arrays)
    : FilledFormat(fields_of(arrays), sample_bytes_of(arrays)),
      arrays_(std::move(arrays)),
      files_(arrays_),
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
  FEEDLINE_CHECK_OK(files_.check());
  std::uint64_t read = 0;
  auto first = first_rows.begin();
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    const NamedArray& array = arrays_[a];
    if (array.offsets.empty()) {
      if (first->data != nullptr) {
        FEEDLINE_CHECK_OK(gather(a, samples, first->data));
        read += samples.size() * array.row.bytes();
      }
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

Result<std::uint64_t> ArrayFormat::read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                                 std::span<std::int64_t> out) const {
  FEEDLINE_CHECK_OK(files_.check());
  FEEDLINE_CHECK(begin + out.size() <= length(index, field));
  const NamedArray& array = arrays_[array_of_[field]];
  FEEDLINE_TRY(const ToInt64 convert, to_int64_of(array.row.dtype));
  const std::uint64_t first = static_cast<std::uint64_t>(array.offsets[index]) + begin;
  convert(array.data + first * array.row.bytes(), out.size(), out.data());
  return out.size() * array.row.bytes();
}

Result<void> ArrayFormat::gather(std::size_t array, std::span<const std::uint64_t> samples, std::byte* out) const {
  const base::Rows rows{arrays_[array].data, arrays_[array].stride, arrays_[array].row.bytes()};
  const storage::BackingFile* const file = files_.of(array);
  if (file == nullptr || rows.bytes < kLargeRowBytes) {
    base::gather_rows(rows, samples, out);
    return {};
  }
  for (const std::uint64_t sample : samples) {
    FEEDLINE_CHECK_OK(file->read({rows.data + static_cast<std::ptrdiff_t>(sample) * rows.stride, rows.bytes}, out));
    out += rows.bytes;
  }
  return {};
}

Result<memory::OwnRow> ArrayFormat::own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const {
  const std::size_t array = array_of_[field];
  const bool is_length = field > 0 && array_of_[field - 1] == array;
  return is_length ? memory::OwnRow{} : files_.own_row(arrays_[array], array, index, use);
}

Where ArrayFormat::where(std::uint64_t index) const { return where_in_arrays(index); }

}  // namespace feedline::format
