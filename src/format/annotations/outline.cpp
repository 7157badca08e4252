// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/outline.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace feedline::format {
namespace {

constexpr double kFifths = 5;  // points of COCO's grid per pixel
// The maximum number of steps along all edges of an object. A polygon around an image of 8,192 x 8,192 pixels takes
// 160,000 steps.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 26;

std::uint64_t zigzag(std::int64_t number) {
  return static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63);
}
std::int64_t from_zigzag(std::uint64_t number) {
  return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1);
}

class NumberReader {
 public:
  explicit NumberReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool take(std::uint64_t& number) {
    number = 0;
    for (unsigned shift = 0; shift < 64 && next_ < bytes_.size(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(bytes_[next_++]);
      number |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  std::size_t left() const { return bytes_.size() - next_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
};

std::unexpected<Error> damaged() { return data_error("the stored outline of the annotation is damaged", "format"); }

// Sets the pixels [begin, end) in column-major order to 1.
void set_run(std::uint64_t begin, std::uint64_t end, int height, int width, std::uint8_t* plane) {
  const auto rows = static_cast<std::uint64_t>(height);
  while (begin < end) {
    const std::uint64_t column = begin / rows, row = begin % rows, stop = std::min(rows, row + (end - begin));
    std::uint8_t* pixel = plane + row * static_cast<std::uint64_t>(width) + column;
    for (std::uint64_t y = row; y < stop; ++y, pixel += width) *pixel = 1;
    begin += stop - row;
  }
}

// Finds where the border of a polygon crosses from one pixel column to the next, between two neighbouring points on its
// edges. Each element of `borders` is the column-major index of the pixel at which the inside begins or ends.
class Borders {
 public:
  Borders(int height, int width, std::vector<std::uint64_t>& borders)
      : height_(height), width_(width), borders_(borders) {}

  void add(std::int32_t x, std::int32_t y) {
    if (!std::exchange(is_first_, false) && x != x_) cross(x, y);
    x_ = x;
    y_ = y;
  }

 private:
  void cross(std::int32_t x, std::int32_t y) {
    const double column = ((x < x_ ? x : x - 1) + .5) / kFifths - .5;
    if (std::floor(column) != column || column < 0 || column > width_ - 1) return;
    const double row = std::clamp((std::min(y, y_) + .5) / kFifths - .5, 0., static_cast<double>(height_));
    borders_.push_back(static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(height_) +
                       static_cast<std::uint64_t>(std::ceil(row)));
  }

  const int height_, width_;
  std::vector<std::uint64_t>& borders_;
  std::int32_t x_ = 0, y_ = 0;
  bool is_first_ = true;
};

// Adds all grid points on an edge by stepping along its longer axis. Always starts at the left or upper end, because
// rounding depends on the direction.
void draw_edge(std::int32_t x0, std::int32_t y0, std::int32_t x1, std::int32_t y1, Borders& borders) {
  const std::int32_t dx = std::abs(x1 - x0), dy = std::abs(y1 - y0);
  const bool is_flat = dx >= dy, turns = is_flat ? x0 > x1 : y0 > y1;
  if (turns) std::swap(x0, x1), std::swap(y0, y1);
  const std::int32_t steps = std::max(dx, dy);
  if (steps == 0) return borders.add(x0, y0);  // a single point has no slope
  const double slope = is_flat ? static_cast<double>(y1 - y0) / dx : static_cast<double>(x1 - x0) / dy;
  for (std::int32_t i = 0; i <= steps; ++i) {
    const std::int32_t step = turns ? steps - i : i;
    if (is_flat)
      borders.add(x0 + step, static_cast<std::int32_t>(y0 + slope * step + .5));
    else
      borders.add(static_cast<std::int32_t>(x0 + slope * step + .5), y0 + step);
  }
}

Result<void> draw_polygon(std::span<const std::int32_t> points, int height, int width, std::uint64_t& steps,
                          OutlineScratch& scratch, std::uint8_t* plane) {
  const std::size_t count = points.size() / 2;
  scratch.borders.clear();
  Borders borders(height, width, scratch.borders);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = (i + 1) % count;
    const std::int32_t x0 = points[2 * i], y0 = points[2 * i + 1], x1 = points[2 * next], y1 = points[2 * next + 1];
    steps += static_cast<std::uint64_t>(std::max(std::abs(x1 - x0), std::abs(y1 - y0))) + 1;
    if (steps > kMostSteps) return data_error("the edges of the polygons of an annotation are too long", "format");
    draw_edge(x0, y0, x1, y1, borders);
  }
  std::ranges::sort(scratch.borders);
  // a closed line crosses a column border an even number of times
  for (std::size_t i = 0; i + 1 < scratch.borders.size(); i += 2)
    set_run(scratch.borders[i], scratch.borders[i + 1], height, width, plane);
  return {};
}

Result<void> draw_polygons(NumberReader reader, int height, int width, OutlineScratch& scratch, std::uint8_t* plane) {
  std::uint64_t polygons = 0, steps = 0;
  if (!reader.take(polygons)) return damaged();
  for (; polygons > 0; --polygons) {
    std::uint64_t count = 0;
    if (!reader.take(count) || count == 0 || count > reader.left() / 2) return damaged();
    scratch.points.resize(2 * count);
    std::int64_t last[2] = {0, 0};
    for (std::size_t i = 0; i < 2 * count; ++i) {
      std::uint64_t step = 0;
      if (!reader.take(step)) return damaged();
      std::int64_t& value = last[i % 2];
      // the sum of two such steps cannot overflow
      if (std::abs(from_zigzag(step)) > 4 * std::int64_t{kMostFifths}) return damaged();
      value += from_zigzag(step);
      if (std::abs(value) > kMostFifths) return damaged();
      scratch.points[i] = static_cast<std::int32_t>(value);
    }
    FEEDLINE_CHECK_OK(draw_polygon(scratch.points, height, width, steps, scratch, plane));
  }
  return {};
}

Result<void> draw_runs(NumberReader reader, int height, int width, std::uint8_t* plane) {
  std::uint64_t rows = 0, columns = 0, count = 0;
  if (!reader.take(rows) || !reader.take(columns) || !reader.take(count) || count > reader.left()) return damaged();
  if (rows != static_cast<std::uint64_t>(height) || columns != static_cast<std::uint64_t>(width))
    return data_error("the runs of an annotation encode a mask of " + std::to_string(columns) + " x " +
                          std::to_string(rows) + " pixels, but its image has " + std::to_string(width) + " x " +
                          std::to_string(height),
                      "format");
  const std::uint64_t all = rows * columns;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t run = 0;
    if (!reader.take(run) || run > all - at) return damaged();
    if (i % 2 == 1) set_run(at, at + run, height, width, plane);
    at += run;
  }
  return {};
}

}  // namespace

std::optional<std::int32_t> to_fifths(double pixels) {
  const double fifths = kFifths * pixels + .5;
  if (!(std::abs(fifths) < kMostFifths)) return {};
  return static_cast<std::int32_t>(fifths);
}

void OutlineWriter::add(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out_.push_back(static_cast<std::byte>(number | 0x80));
  out_.push_back(static_cast<std::byte>(number));
}

void OutlineWriter::add_polygon(std::span<const std::int32_t> fifths) {
  add(fifths.size() / 2);
  for (std::size_t i = 0; i < fifths.size(); ++i) add(zigzag(fifths[i] - (i < 2 ? 0 : fifths[i - 2])));
}

void OutlineWriter::add_runs(std::uint32_t height, std::uint32_t width, std::span<const std::uint32_t> runs) {
  add(height);
  add(width);
  add(runs.size());
  for (const std::uint32_t run : runs) add(run);
}

// Each character, minus '0', encodes five bits of a number, lowest first. The sixth bit is set if more characters
// follow. From the fourth run on, the number is the difference from the run two positions before.
std::expected<void, std::string> parse_runs(std::string_view text, std::vector<std::uint32_t>& runs) {
  runs.clear();
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t value = 0;
    for (unsigned shift = 0;; shift += 5) {
      if (at == text.size()) return std::unexpected("the RLE text ends within a number");
      const int bits = text[at++] - '0';
      if (bits < 0 || bits > 0x3f) return std::unexpected("the RLE text has an invalid character");
      if (shift > 35) return std::unexpected("the RLE text has a number that is too large");
      value |= static_cast<std::int64_t>(bits & 0x1f) << shift;
      if ((bits & 0x20) != 0) continue;
      if ((bits & 0x10) != 0) value -= std::int64_t{1} << (shift + 5);
      break;
    }
    if (runs.size() > 2) value += runs[runs.size() - 2];
    if (value < 0 || value > INT32_MAX) return std::unexpected("a run length is negative or too large");
    runs.push_back(static_cast<std::uint32_t>(value));
  }
  return {};
}

std::expected<void, std::string> check_runs(std::uint64_t height, std::uint64_t width,
                                            std::span<const std::uint32_t> runs) {
  const std::uint64_t all = height * width;
  std::uint64_t sum = 0;
  for (const std::uint32_t run : runs) sum += run;
  if (sum == all) return {};
  return std::unexpected("the runs cover " + std::to_string(sum) + " pixels, but a mask of " + std::to_string(width) +
                         " x " + std::to_string(height) + " has " + std::to_string(all));
}

Result<void> draw_outline(const Outline& outline, int height, int width, OutlineScratch& scratch, std::uint8_t* plane) {
  switch (outline.kind) {
    case OutlineKind::kPolygons:
      return draw_polygons(NumberReader(outline.bytes), height, width, scratch, plane);
    case OutlineKind::kRuns:
      return draw_runs(NumberReader(outline.bytes), height, width, plane);
    case OutlineKind::kNone:
      break;
  }
  return data_error("the annotation has no outline", "format");
}

}  // namespace feedline::format
