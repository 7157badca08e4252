// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::format {

// A list of strings in a mapped table, stored as their concatenation and the end of each string.
struct TextList {
  std::string_view text;
  std::span<const std::uint64_t> ends;

  std::uint64_t size() const { return ends.size(); }
  // Requires: i < size().
  std::string_view operator[](std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return text.substr(begin, ends[i] - begin);
  }
  // Returns whether the ends are in ascending order and the last end equals the length of the text.
  bool is_consistent() const { return std::ranges::is_sorted(ends) && (ends.empty() ? 0 : ends.back()) == text.size(); }
};

}  // namespace feedline::format
