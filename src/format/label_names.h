// SPDX-License-Identifier: Apache-2.0
#pragma once

// Common names of label columns. Python reads them through _engine.label_names().

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace feedline::format {

// "category" is separate and last: it is common for folders of classes, but in a table it is often metadata of the
// sample, so such a column is not the label by default.
inline constexpr std::array<std::string_view, 7> kLabelNames{"label",  "labels",   "cls",     "class",
                                                             "target", "label_id", "category"};
inline constexpr std::span<const std::string_view> kLabelNamesOfColumns = std::span(kLabelNames).first<6>();

constexpr bool is_label_name(std::string_view name) {
  return std::ranges::find(kLabelNames, name) != kLabelNames.end();
}

}  // namespace feedline::format
