// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outline of an object as polygons, or as runs of pixels, and the pixels that it covers: those of COCO's own tools.
//
// As bytes, which a table keeps (numbers are LEB128, those with a sign in zigzag):
//
//     polygons    how many; of each the number of its points, and then x and y of each, less those of the point before,
//                 in fifths of a pixel
//     runs        height, width, how many; the lengths of runs without and with the object, column by column

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::format {

enum class OutlineKind : std::uint8_t { kNone, kPolygons, kRuns };

struct Outline {
  OutlineKind kind = OutlineKind::kNone;
  std::span<const std::byte> bytes;
};

// How many fifths of a pixel off the image a point may lie: what is drawn of an edge takes time by its length.
inline constexpr std::int32_t kMostFifths = 5 << 16;

// COCO's grid of points: five to a pixel. nullopt: no number, or one farther off than kMostFifths.
std::optional<std::int32_t> to_fifths(double pixels);

// Puts the bytes of an outline together.
class OutlineWriter {
 public:
  explicit OutlineWriter(std::vector<std::byte>& out) : out_(out) {}
  void add(std::uint64_t number);
  // fifths: x, y, x, y.
  void add_polygon(std::span<const std::int32_t> fifths);
  void add_runs(std::uint32_t height, std::uint32_t width, std::span<const std::uint32_t> runs);

 private:
  std::vector<std::byte>& out_;
};

// The runs in COCO's text of them. Why not, in words: it is none.
std::expected<void, std::string> parse_runs(std::string_view text, std::vector<std::uint32_t>& runs);
// Do they cover a mask of this size, and no more? In words why not.
std::expected<void, std::string> check_runs(std::uint64_t height, std::uint64_t width,
                                            std::span<const std::uint32_t> runs);

// Memory that a thread keeps.
struct OutlineScratch {
  std::vector<std::int32_t> points;
  std::vector<std::uint64_t> borders;
};

// Sets to 1 the pixels of the outline in `plane`, rows of `width`, and leaves the others. kData: the bytes are no such
// outline, of another image's size, or polygons that are absurdly long to draw. Requires: room for height x width.
Result<void> draw_outline(const Outline& outline, int height, int width, OutlineScratch& scratch, std::uint8_t* plane);

}  // namespace feedline::format
