// SPDX-License-Identifier: Apache-2.0
#include "format/sources/sample_name.h"

#include <algorithm>

namespace feedline::format {

// The first group of the expression is an optional prefix that ends in a slash, as long as possible, followed by at
// least one character other than a dot. The dot that matches is therefore the first dot after the prefix. This dot must
// not directly follow the prefix, and no slash may follow the dot. With a shorter prefix, the first dot cannot come
// later, so the search ends as soon as the dot precedes the last slash. "." does not match a newline, so prefixes end
// before the first one.
std::optional<SampleName> split_sample_name(std::string_view name) {
  const std::size_t last_slash = name.rfind('/');
  std::size_t prefix = name.substr(0, name.find('\n')).rfind('/') + 1;  // 0 if there is no slash: npos + 1
  while (true) {
    const std::size_t dot = name.find('.', prefix);
    if (dot == std::string_view::npos || (last_slash != std::string_view::npos && dot < last_slash)) return {};
    if (dot > prefix) return SampleName{name.substr(0, dot), name.substr(dot + 1)};
    if (prefix == 0) return {};
    prefix = prefix == 1 ? 0 : name.rfind('/', prefix - 2) + 1;
  }
}

bool is_reserved_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  std::string_view first = name.substr(0, slash);
  // "$" also matches before a newline at the end of the text
  if (slash == std::string_view::npos && first.ends_with('\n')) first.remove_suffix(1);
  constexpr std::size_t kShortest = 4;  // the two pairs of underscores must not overlap
  return first.size() >= kShortest && first.starts_with("__") && first.ends_with("__");
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace feedline::format
