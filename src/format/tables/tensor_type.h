// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists of numbers whose extension type makes tensors of them: Arrow's fixed_shape_tensor, and Ray's own one.

#include <cstddef>
#include <span>
#include <string_view>

#include "format/tables/column.h"

namespace feedline::format {

bool is_tensor_type(std::string_view extension);

// Sets the extents of the column's tensors, and the order of their dimensions, by the type's parameters (JSON). Where
// they do not fit the column, it is one that no field is made of, and says why.
void set_tensor(std::string_view extension, std::string_view parameters, ColumnType& column);

// Copies whole tensors, stored one after the other, with their dimensions in the samples' order. Requires: the column
// has an order, and `out` is as large as `in`, apart from it.
void reorder_dimensions(const ColumnType& column, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace feedline::format
