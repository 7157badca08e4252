// SPDX-License-Identifier: Apache-2.0
#pragma once

// The optional parts of an annotation (all except its box), as serialized in a table. The parts are concatenated. Each
// part consists of a byte for its kind, its length as LEB128, and its data.
//
//     polygons, runs   as in outline.h
//     keypoints        x, y, visibility of each point, floats
//     caption          a JSON string, with its quotes
//     wrong            a byte for the value that cannot be used, and the reason as text

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/annotations/outline.h"

namespace feedline::format {

enum class DetailKind : std::uint8_t { kPolygons = 1, kRuns, kKeypoints, kCaption, kWrong };
enum class CocoValue : std::uint8_t { kBox = 1, kCategory, kOutline, kKeypoints, kArea, kCaption };
inline constexpr std::uint8_t kMostCocoValue = 6;

void add_detail(DetailKind kind, std::span<const std::byte> bytes, std::vector<std::byte>& out);
void add_wrong(CocoValue value, std::string_view why, std::vector<std::byte>& out);

// The parts of one annotation, as views into the table.
struct CocoDetails {
  Outline outline;
  std::span<const std::byte> keypoints;
  std::string_view caption;  // empty if there is none
  std::string_view wrong[kMostCocoValue + 1];

  std::string_view wrong_of(CocoValue value) const { return wrong[static_cast<std::size_t>(value)]; }
};
// Ignores malformed parts.
CocoDetails details_of(std::span<const std::byte> bytes);

}  // namespace feedline::format
