// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions common to both formats of arrays in memory.

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
// Returns a view of a sample.
struct StoredRow {
  std::span<const std::byte> bytes;
  Shape shape;
};
StoredRow row_of(const NamedArray& array, std::uint64_t index);
// kConfig: no arrays, no rows, different numbers of samples, rows without elements, or invalid offsets. may_be_empty:
// whether a sample of the ragged array may have no rows.
Result<void> check_arrays(std::span<const NamedArray> arrays,
                          const std::function<bool(const NamedArray&)>& may_be_empty);
// kConfig: a name is used twice.
Result<void> check_names(const std::vector<FieldDescription>& fields);
// The size of a sample of average length.
std::uint64_t sample_bytes_of(std::span<const NamedArray> arrays);
// A hash of names, kinds, dtypes, shapes, lengths and some of the rows.
std::uint64_t fingerprint_of(std::span<const NamedArray> arrays);
Where where_in_arrays(std::uint64_t index);

}  // namespace feedline::format
