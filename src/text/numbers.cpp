// SPDX-License-Identifier: Apache-2.0
#include "text/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace feedline::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Both operands are exact doubles, so only the quotient is rounded.
constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53;
constexpr std::array<double, 16> kPowers{1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                         1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

struct Named {
  std::string_view text;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<Named, 3> kNamed{
    {{"NaN", std::numeric_limits<double>::quiet_NaN()}, {"Infinity", kInfinity}, {"-Infinity", -kInfinity}}};

// Returns the end of the digits that begin at `at`.
std::size_t end_of_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

}  // namespace

Number parse_number(std::string_view text) {
  Number number;
  const bool is_negative = text.starts_with('-');
  const std::size_t begin = is_negative ? 1 : 0;
  std::size_t end = end_of_digits(text, begin);
  if (end == begin)
    for (const Named& named : kNamed)
      if (text.starts_with(named.text)) return {named.text.size(), named.value, {}, false};
  if (end == begin || (text[begin] == '0' && end > begin + 1)) return number;
  std::uint64_t digits = 0;
  bool is_exact = end - begin <= 18;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && is_exact; ++i)
      digits = digits * 10 + static_cast<std::uint64_t>(text[i] - '0');
  };
  add(begin, end);
  const std::size_t whole_end = end;
  std::size_t decimals = 0;
  if (end < text.size() && text[end] == '.') {
    const std::size_t last = end_of_digits(text, end + 1);
    decimals = last - end - 1;
    if (decimals == 0) return number;
    is_exact = is_exact && whole_end - begin + decimals <= 18 && decimals < kPowers.size();
    add(end + 1, last);
    end = last;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const std::size_t sign = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-') ? 1 : 0;
    const std::size_t last = end_of_digits(text, end + 1 + sign);
    if (last == end + 1 + sign) return number;
    is_exact = false;
    end = last;
  }
  number.length = end;
  if (end == whole_end && is_exact) {
    number.whole = is_negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  } else if (end == whole_end) {
    std::int64_t whole = 0;
    if (std::from_chars(text.data(), text.data() + end, whole).ec == std::errc()) number.whole = whole;
  }
  if (is_exact && digits <= kMostExact) {
    const double size = static_cast<double>(digits) / kPowers[decimals];
    number.real = is_negative ? -size : size;
    return number;
  }
  const auto read = std::from_chars(text.data(), text.data() + end, number.real);
  // from_chars reports values that underflow to 0 as out of range
  if (read.ec == std::errc::result_out_of_range) {
    const std::size_t exponent = text.substr(0, end).find_first_of("eE");
    const bool is_small = exponent == text.npos ? text[begin] == '0' : text[exponent + 1] == '-';
    number.real = 0;
    number.is_out_of_range = !is_small;
  }
  return number;
}

std::optional<double> parse_real(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace feedline::text
