// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/key_pattern.h"

#include <algorithm>
#include <charconv>

namespace feedline::format {
namespace {

constexpr std::size_t kMostDigits = 18;  // maximum digits of a 64-bit number

// Parses "", ":d" or ":09d" and returns the minimum number of digits, or nullopt if the text is not a number format.
std::optional<std::size_t> digits_of(std::string_view inside) {
  if (inside.empty() || inside == ":d" || inside == ":") return 0;
  if (!inside.starts_with(":0") || !inside.ends_with('d') || inside.size() < 4) return {};
  const std::string_view text = inside.substr(2, inside.size() - 3);
  std::size_t digits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digits);
  if (error != std::errc() || end != text.data() + text.size() || digits > kMostDigits) return {};
  return digits;
}

}  // namespace

Result<KeyPattern> KeyPattern::parse(std::string_view text) {
  const std::size_t open = text.find('{'), close = text.find('}');
  const std::string shown(text);
  if (open == text.npos || close == text.npos || close < open || text.find('{', open + 1) != text.npos ||
      text.find('}', close + 1) != text.npos)
    return config_error("fields: '" + shown +
                        "' is not a pattern of keys: a pattern needs one {key} or {:09d} for the sample");
  const std::string_view inside = text.substr(open + 1, close - open - 1);
  KeyPattern pattern{std::string(text.substr(0, open)), std::string(text.substr(close + 1))};
  if (inside == "key") return pattern;
  const auto digits = digits_of(inside);
  if (!digits)
    return config_error("fields: '{" + std::string(inside) + "}' in '" + shown +
                        "' is neither {key} nor a number such as {:09d}");
  pattern.is_number = true;
  pattern.digits = *digits;
  return pattern;
}

std::optional<std::string_view> KeyPattern::sample_in(std::string_view key) const {
  if (key.size() <= prefix.size() + suffix.size() || !key.starts_with(prefix) || !key.ends_with(suffix)) return {};
  const std::string_view sample = key.substr(prefix.size(), key.size() - prefix.size() - suffix.size());
  if (!is_number) return sample;
  const bool is_digits = std::ranges::all_of(sample, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_digits || sample.size() < digits || sample.size() > kMostDigits) return {};
  // Rejects digits if Python's format() would write the same number differently.
  if (sample.size() > std::max<std::size_t>(digits, 1) && sample.front() == '0') return {};
  return sample;
}

std::string_view KeyPattern::id_of(std::string_view sample) const {
  if (!is_number) return sample;
  return sample.substr(std::min(sample.find_first_not_of('0'), sample.size() - 1));
}

}  // namespace feedline::format
