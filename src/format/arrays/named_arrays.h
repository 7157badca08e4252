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
// A view of one sample.
struct StoredRow {
  std::span<const std::byte> bytes;
  Shape shape;
};
StoredRow row_of(const NamedArray& array, std::uint64_t index);
// Fails with kConfig if there are no arrays or no rows, arrays have different numbers of samples, rows have no
// elements, or offsets are invalid. `may_be_empty` returns whether samples of a ragged array may have no rows.
Result<void> check_arrays(std::span<const NamedArray> arrays,
                          const std::function<bool(const NamedArray&)>& may_be_empty);
// Fails with kConfig if two fields have the same name.
Result<void> check_names(const std::vector<FieldDescription>& fields);
// Returns the average size of a sample.
std::uint64_t sample_bytes_of(std::span<const NamedArray> arrays);
// Returns a hash of the names, kinds, dtypes, shapes, lengths and some of the rows.
std::uint64_t fingerprint_of(std::span<const NamedArray> arrays);
Where where_in_arrays(std::uint64_t index);

}  // namespace feedline::format
