// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace feedline::text {

struct Number {
  std::size_t length = 0;             // in characters; 0 if the text does not begin with a number
  double real = 0;                    // the nearest double, as in Python
  std::optional<std::int64_t> whole;  // set if there is no fraction or exponent and the value fits
  bool is_out_of_range = false;       // too large for a double; `real` is 0
};

// Parses a number in JSON syntax at the beginning of a text. Also accepts NaN, Infinity and -Infinity.
Number parse_number(std::string_view text);

// Parses a text that consists of a number in the syntax of Python's float(). Accepts "+.5", "05", "1." and surrounding
// white space. Returns nullopt if the text is not a finite number.
std::optional<double> parse_real(std::string_view text);

}  // namespace feedline::text
