// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::decode {

// Parses lists of numbers in JSON as an array: "[[1, 2.5], [3, 4]]" has the shape (2, 2). Lists have up to three levels
// and equal lengths within a level; "[]" has the shape (0,). NaN, Infinity and null (as NaN) are numbers. Returns the
// shape, and stores the numbers in `numbers`. kData for anything else, with the problem and its byte position.
Result<Shape> read_number_lists(std::span<const std::byte> text, std::vector<float>& numbers);

}  // namespace feedline::decode
