// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outline of an object as polygons or as runs of pixels, and the pixels that it covers, as computed by COCO's
// tools.
//
// The bytes stored in a table (numbers are LEB128, signed ones in zigzag):
//
//     polygons    their number; for each the number of its points, and then x and y of each as differences from the point
//                 before, in fifths of a pixel
//     runs        height, width, number; the lengths of runs without and with the object, column by column

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

// The maximum coordinate of a point, in fifths of a pixel: the time to draw an edge is proportional to its length.
inline constexpr std::int32_t kMostFifths = 5 << 16;

// Converts to COCO's grid, with five points per pixel. nullopt: not a number, or larger than kMostFifths.
std::optional<std::int32_t> to_fifths(double pixels);

// Serializes an outline.
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

// Parses runs from COCO's compressed text. On failure returns the reason.
std::expected<void, std::string> parse_runs(std::string_view text, std::vector<std::uint32_t>& runs);
// Checks that the runs cover exactly a mask of this size. On failure returns the reason.
std::expected<void, std::string> check_runs(std::uint64_t height, std::uint64_t width,
                                            std::span<const std::uint32_t> runs);

// Memory that a thread reuses.
struct OutlineScratch {
  std::vector<std::int32_t> points;
  std::vector<std::uint64_t> borders;
};

// Sets the pixels of the outline in `plane`, with rows of `width`, to 1 and leaves the others unchanged. kData: the
// bytes are not a valid outline, the image size differs, or the polygons are absurdly long. Requires: space for height
// x width.
Result<void> draw_outline(const Outline& outline, int height, int width, OutlineScratch& scratch, std::uint8_t* plane);

}  // namespace feedline::format
