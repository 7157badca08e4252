// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outline of an object as polygons or as runs of pixels, and the pixels that it covers, as computed by COCO's
// tools.
//
// The serialized form in a table, in which numbers are LEB128 and signed numbers use zigzag encoding:
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

// The maximum coordinate of a point in fifths of a pixel. Coordinates are limited because the time to draw an edge is
// proportional to its length.
inline constexpr std::int32_t kMostFifths = 5 << 16;

// Converts a coordinate to COCO's grid of five points per pixel. Returns nullopt for NaN and values above kMostFifths.
std::optional<std::int32_t> to_fifths(double pixels);

// Serializes an outline.
class OutlineWriter {
 public:
  explicit OutlineWriter(std::vector<std::byte>& out) : out_(out) {}
  void add(std::uint64_t number);
  // `fifths` has alternating x and y coordinates.
  void add_polygon(std::span<const std::int32_t> fifths);
  void add_runs(std::uint32_t height, std::uint32_t width, std::span<const std::uint32_t> runs);

 private:
  std::vector<std::byte>& out_;
};

// Parses runs from COCO's compressed text. On failure, returns the reason.
std::expected<void, std::string> parse_runs(std::string_view text, std::vector<std::uint32_t>& runs);
// Checks that the runs cover exactly a mask of this size. Returns the reason on failure.
std::expected<void, std::string> check_runs(std::uint64_t height, std::uint64_t width,
                                            std::span<const std::uint32_t> runs);

// Memory that a thread reuses for all outlines.
struct OutlineScratch {
  std::vector<std::int32_t> points;
  std::vector<std::uint64_t> borders;
};

// Sets the pixels in `plane` that the outline covers to 1 and leaves all other pixels unchanged. Rows of `plane` have
// `width` bytes. Requires: `plane` has height x width bytes. Fails with kData if the outline is invalid, is for a
// different image size, or has too many steps along its edges.
Result<void> draw_outline(const Outline& outline, int height, int width, OutlineScratch& scratch, std::uint8_t* plane);

}  // namespace feedline::format
