// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers as text, as annotation files have them by the million.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace feedline::format {

struct NumberText {
  std::size_t characters = 0;  // 0: the text begins with no number
  double real = 0;
  std::optional<std::int64_t> whole;  // where it has neither a point nor an exponent, and fits
  bool is_out_of_range = false;
};

// The number that the text begins with, in JSON's grammar; NaN, Infinity and -Infinity are numbers as well. To the
// nearest double, as Python reads it.
NumberText read_number(std::string_view text);

// A text that is a number and nothing else, in the grammar of Python's float(): "+.5", "05" and "1." too, with white
// space around it. nullopt: it is none, or none that is finite.
std::optional<double> parse_real(std::string_view text);

}  // namespace feedline::format
