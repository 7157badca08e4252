// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::decode {

// Lists of numbers in JSON, as an array: "[[1, 2.5], [3, 4]]" is of shape (2, 2). Up to three levels, lists of a level
// of one length; "[]" has the shape (0,). NaN, Infinity and null, which is NaN, are numbers. Gives the shape, and puts
// the numbers into `numbers`. kData: anything else; says what is wrong, and at which byte.
Result<Shape> read_number_lists(std::span<const std::byte> text, std::vector<float>& numbers);

}  // namespace feedline::decode
