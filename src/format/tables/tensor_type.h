// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists of numbers that are tensors by their extension type: Arrow's fixed_shape_tensor, and Ray's types.

#include <cstddef>
#include <span>
#include <string_view>

#include "format/tables/column.h"

namespace feedline::format {

bool is_tensor_type(std::string_view extension);

// Sets the dimensions of the column's tensors and their order from the type's parameters (JSON). If they do not match
// the column, it cannot be a field, and its description has the reason.
void set_tensor(std::string_view extension, std::string_view parameters, ColumnType& column);

// Copies complete, consecutive tensors, with their dimensions in the order of samples. Requires: the column has an
// order; `out` has the size of `in` and does not overlap it.
void reorder_dimensions(const ColumnType& column, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace feedline::format
