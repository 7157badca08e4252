// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/named_arrays.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>

#include "format/checksum.h"

namespace feedline::format {
namespace {

// The number of rows that the fingerprint includes for each array. Reading all of a large mapped array would take too
// long.
constexpr std::uint64_t kPrintedRows = 64;
// For rows with more than kMostWhole bytes, the fingerprint includes only kParts parts of kPartBytes bytes each.
constexpr std::size_t kMostWhole = std::size_t{1} << 20, kParts = 16, kPartBytes = 4096;

void add_row(Fingerprint& fingerprint, const std::byte* row, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(row), bytes);
  if (bytes <= kMostWhole) return fingerprint.add(text);
  for (std::size_t part = 0; part < kParts; ++part)
    fingerprint.add(text.substr((bytes - kPartBytes) / (kParts - 1) * part, kPartBytes));
}

Result<void> check_offsets(const NamedArray& array, bool may_be_empty) {
  const std::string start = "arrays: the offsets of \"" + array.name + "\" ";
  const auto& offsets = array.offsets;
  if (array.row.shape.dims() + 2 > Shape::kMaxDims)  // plus the ragged extent and the batch
    return config_error("arrays: \"" + array.name + "\" has more than " + std::to_string(Shape::kMaxDims) +
                        " dimensions in a batch");
  if (array.rows > 1 && array.stride != static_cast<std::ptrdiff_t>(array.row.bytes()))
    return config_error("arrays: the rows of \"" + array.name +
                        "\", a ragged array, are not contiguous; copy it first");
  if (offsets.front() != 0) return config_error(start + "begin at " + std::to_string(offsets.front()) + ", not at 0");
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] < offsets[i])
      return config_error(start + "do not ascend: sample " + std::to_string(i) + " goes from " +
                          std::to_string(offsets[i]) + " to " + std::to_string(offsets[i + 1]));
    if (offsets[i + 1] == offsets[i] && !may_be_empty)
      return config_error("arrays: sample " + std::to_string(i) + " of \"" + array.name + "\" is empty");
  }
  if (static_cast<std::uint64_t>(offsets.back()) != array.rows)
    return config_error(start + "end at " + std::to_string(offsets.back()) + ", but there are " +
                        std::to_string(array.rows) + " rows");
  return {};
}

}  // namespace

std::uint64_t samples_of(const NamedArray& array) {
  return array.offsets.empty() ? array.rows : array.offsets.size() - 1;
}

StoredRow row_of(const NamedArray& array, std::uint64_t index) {
  const bool is_ragged = !array.offsets.empty();
  const std::int64_t begin = is_ragged ? array.offsets[index] : static_cast<std::int64_t>(index);
  const std::int64_t rows = is_ragged ? array.offsets[index + 1] - begin : 1;
  return {{array.data + begin * array.stride, static_cast<std::size_t>(rows) * array.row.bytes()},
          is_ragged ? array.row.shape.with_front(rows) : array.row.shape};
}

Result<void> check_arrays(std::span<const NamedArray> arrays,
                          const std::function<bool(const NamedArray&)>& may_be_empty) {
  if (arrays.empty()) return config_error("arrays: at least one array is needed");
  const NamedArray& first = arrays.front();
  for (const NamedArray& array : arrays) {
    const auto counted = [](const NamedArray& a) {
      return "\"" + a.name + "\" has " + std::to_string(samples_of(a)) + (a.offsets.empty() ? " rows" : " samples");
    };
    if (samples_of(array) != samples_of(first))
      return config_error("arrays: " + counted(array) + ", " + counted(first));
    if (array.row.bytes() == 0 && !may_be_empty(array))
      return config_error("arrays: the rows of \"" + array.name + "\" have no elements");
    if (!array.offsets.empty()) FEEDLINE_CHECK_OK(check_offsets(array, may_be_empty(array)));
  }
  if (samples_of(first) == 0) return config_error("arrays: there are no rows");
  return {};
}

Result<void> check_names(const std::vector<FieldDescription>& fields) {
  std::set<std::string> names;
  for (const FieldDescription& field : fields)
    if (!names.insert(field.name).second) return config_error("arrays: the name \"" + field.name + "\" is used twice");
  return {};
}

std::uint64_t sample_bytes_of(std::span<const NamedArray> arrays) {
  std::uint64_t bytes = 0;
  for (const NamedArray& array : arrays)
    bytes += array.offsets.empty() ? array.row.bytes() : array.row.bytes() * array.rows / samples_of(array);
  return bytes;
}

std::uint64_t fingerprint_of(std::span<const NamedArray> arrays) {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("arrays"));
  for (const NamedArray& array : arrays) {
    fingerprint.add(array.name);
    if (array.kind != "array") fingerprint.add(array.kind);
    fingerprint.add(name_of(array.row.dtype));
    fingerprint.add(array.row.shape.to_string());
    fingerprint.add(array.rows);
    const std::uint64_t printed = std::min(array.rows, kPrintedRows);
    for (std::uint64_t i = 0; i < printed; ++i) {
      const std::byte* row = array.data + static_cast<std::ptrdiff_t>(i * array.rows / printed) * array.stride;
      add_row(fingerprint, row, array.row.bytes());
    }
    // the composition of batches may depend on the lengths of all samples
    if (!array.offsets.empty()) fingerprint.add(std::as_bytes(std::span(array.offsets)));
  }
  return fingerprint.value();
}

Where where_in_arrays(std::uint64_t index) {
  Where where;
  where.key = "row " + std::to_string(index);
  where.record = index;
  return where;
}

}  // namespace feedline::format
