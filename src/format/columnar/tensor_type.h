// SPDX-License-Identifier: Apache-2.0
#pragma once

// Extension types that store tensors as lists of numbers: Arrow's fixed_shape_tensor and Ray's types.

#include <cstddef>
#include <span>
#include <string_view>

#include "format/columnar/column.h"

namespace feedline::format {

bool is_tensor_type(std::string_view extension);

// Sets the dimensions of the column's tensors and their order from the JSON parameters of the extension type. If the
// parameters do not match the column, it cannot be a field, and its description contains the reason.
void set_tensor(std::string_view extension, std::string_view parameters, ColumnType& column);

// Copies complete, consecutive tensors, and puts their dimensions into the order that samples have. Requires: the
// column has an order, and `out` has the size of `in` and does not overlap it.
void reorder_dimensions(const ColumnType& column, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace feedline::format
