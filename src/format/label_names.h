// SPDX-License-Identifier: Apache-2.0
#pragma once

// The column names that are recognised as labels. Available in Python as _engine.label_names().

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace feedline::format {

// "category" is last, so that kLabelNamesOfColumns can exclude it: in tables, a column with this name often contains
// metadata about the sample, not its label.
inline constexpr std::array<std::string_view, 7> kLabelNames{"label",  "labels",   "cls",     "class",
                                                             "target", "label_id", "category"};
inline constexpr std::span<const std::string_view> kLabelNamesOfColumns = std::span(kLabelNames).first<6>();

constexpr bool is_label_name(std::string_view name) {
  return std::ranges::find(kLabelNames, name) != kLabelNames.end();
}

}  // namespace feedline::format
