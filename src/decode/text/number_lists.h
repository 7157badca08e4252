// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::decode {

// Parses JSON lists of numbers as an array: "[[1, 2.5], [3, 4]]" has the shape (2, 2). Lists may be nested up to three
// levels deep, and must have equal lengths within a level; "[]" has the shape (0,). NaN, Infinity and null (read as
// NaN) are accepted. Returns the shape, and writes the numbers to `numbers`. kData for all other input; the message
// describes the problem and its byte position.
Result<Shape> read_number_lists(std::span<const std::byte> text, std::vector<float>& numbers);

}  // namespace feedline::decode
