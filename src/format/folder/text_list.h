// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::format {

// Texts one behind the other, and where each ends: a part of a table that is mapped.
struct TextList {
  std::string_view text;
  std::span<const std::uint64_t> ends;

  std::uint64_t size() const { return ends.size(); }
  // Requires: i < size().
  std::string_view operator[](std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return text.substr(begin, ends[i] - begin);
  }
  // Does each end lie at or behind the one before, and the last where the text ends?
  bool is_consistent() const { return std::ranges::is_sorted(ends) && (ends.empty() ? 0 : ends.back()) == text.size(); }
};

}  // namespace feedline::format
