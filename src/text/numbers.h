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

// Parses the number at the beginning of a text by JSON's grammar. NaN, Infinity and -Infinity are accepted.
Number parse_number(std::string_view text);

// Parses a text that is one number by the grammar of Python's float(): "+.5", "05" and "1." are accepted, as is white
// space around it. nullopt if it is not a finite number.
std::optional<double> parse_real(std::string_view text);

}  // namespace feedline::text
