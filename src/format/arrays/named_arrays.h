// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both formats of arrays in memory know of a NamedArray.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

std::uint64_t samples_of(const NamedArray& array);
// A sample of an array where it is stored.
struct StoredRow {
  std::span<const std::byte> bytes;
  Shape shape;
};
StoredRow row_of(const NamedArray& array, std::uint64_t index);
// kConfig: no array, none with a row, different numbers of samples, rows without elements, wrong offsets.
// may_be_empty: may a sample of the array, which is ragged, have no row?
Result<void> check_arrays(std::span<const NamedArray> arrays,
                          const std::function<bool(const NamedArray&)>& may_be_empty);
// kConfig: a name comes twice.
Result<void> check_names(const std::vector<FieldDescription>& fields);
// Of a sample of middle length.
std::uint64_t sample_bytes_of(std::span<const NamedArray> arrays);
// Of names, kinds, dtypes, shapes, lengths and some of the rows.
std::uint64_t fingerprint_of(std::span<const NamedArray> arrays);
Where where_in_arrays(std::uint64_t index);

}  // namespace feedline::format
