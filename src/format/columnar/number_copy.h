// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies the numbers of a column to rows of a batch, and converts their dtype.

#include <cstddef>
#include <cstdint>
#include <span>

#include "feedline/array.h"
#include "feedline/error.h"
#include "format/columnar/column_table.h"

namespace feedline::format {

// The contents of a field for a row without a value.
enum class NullValue : std::uint8_t {
  kError,  // such a row is an error
  kNan,
  kFlag,  // the field is false, and true for other rows
};

struct NumberConversion {
  DType from = DType::kFloat32, to = DType::kFloat32;
  std::uint64_t elements = 1;  // numbers per row. Requires: from == to if not 1
  NullValue null = NullValue::kError;
};

// Copies the numbers of `rows` to out + GatheredRow::to * stride. Fails with kData if a value is missing and
// NullValue::kError applies, if an integer exceeds int64, or if a list has a different number of elements. Requires:
// the rows belong to the run, and the conversion is to the same dtype, from integers to int64, to float32, to float64,
// or, for NullValue::kFlag, to bool.
Result<void> copy_numbers(const NumberRun& run, std::span<const GatheredRow> rows, const NumberConversion& conversion,
                          std::byte* out, std::size_t stride);

}  // namespace feedline::format
