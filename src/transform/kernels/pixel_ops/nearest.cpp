// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/nearest.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace feedline::transform {
namespace {

void fill_pixels(std::uint8_t* out, int count, int channels, const Colour& fill) {
  if (channels == 1 || (fill[0] == fill[1] && fill[1] == fill[2])) {
    std::memset(out, fill[0], static_cast<std::size_t>(count) * static_cast<std::size_t>(channels));
    return;
  }
  for (int x = 0; x < count; ++x, out += 3) std::copy_n(fill.data(), 3, out);
}

// Returns the pixel that contains a position; -1 if there is none.
int pixel_of(double point, int size) { return point >= 0.0 && point < size ? static_cast<int>(point) : -1; }

template <int kChannels>
void copy_pixel(const std::uint8_t* from, std::uint8_t* to) {
  std::memcpy(to, from, kChannels);
}

// Without rotation and shear, every row uses the same columns of the source.
template <int kChannels>
void scale(const memory::PixelView& in, const AffineMatrix& m, const Colour& fill, std::vector<int>& columns,
           memory::PixelBuffer& out) {
  const int width = out.width();
  columns.resize(static_cast<std::size_t>(width));
  double point = m[2] + m[0] * 0.5;
  int begin = width, end = 0;  // of the pixels that have a column
  bool consecutive = true;
  for (int x = 0; x < width; ++x, point += m[0]) {
    const int column = pixel_of(point, in.width);
    columns[static_cast<std::size_t>(x)] = column;
    if (column < 0) continue;
    if (begin == width) begin = x;
    consecutive = consecutive && column == columns[static_cast<std::size_t>(begin)] + x - begin;
    end = x + 1;
  }
  if (end == 0) begin = end;
  double row_place = m[5] + m[4] * 0.5;
  for (int y = 0; y < out.height(); ++y, row_place += m[4]) {
    std::uint8_t* const to = out.row(y);
    const int row = pixel_of(row_place, in.height);
    if (row < 0) {
      fill_pixels(to, width, kChannels, fill);
      continue;
    }
    fill_pixels(to, begin, kChannels, fill);
    fill_pixels(to + end * kChannels, width - end, kChannels, fill);
    const std::uint8_t* const from = in.row(row);
    if (consecutive && end > begin) {
      std::memcpy(to + begin * kChannels, from + columns[static_cast<std::size_t>(begin)] * kChannels,
                  static_cast<std::size_t>((end - begin) * kChannels));
    } else {
      for (int x = begin; x < end; ++x)
        copy_pixel<kChannels>(from + columns[static_cast<std::size_t>(x)] * kChannels, to + x * kChannels);
    }
  }
}

std::int64_t fixed(double value) { return static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5)); }

bool fits_fixed(const AffineMatrix& m, int width, int height) {
  const auto fits = [&m](int x, int y) {
    return std::abs(x * m[0] + y * m[1] + m[2]) < 32768.0 && std::abs(x * m[3] + y * m[4] + m[5]) < 32768.0;
  };
  return fits(0, 0) && fits(width, height) && fits(0, height) && fits(width, 0);
}

struct Run {
  int begin = 0, end = 0;
};

// Returns the range of x with 0 <= start + x * step < limit, in 16.16 fixed point.
Run inside(std::int64_t start, std::int64_t step, std::int64_t limit, int count) {
  const auto floor_of = [](std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); };
  if (step == 0) return start >= 0 && start < limit ? Run{0, count} : Run{};
  // a negative step is handled by mirroring
  if (step < 0) {
    start = limit - 1 - start;
    step = -step;
  }
  const std::int64_t begin = start >= 0 ? 0 : floor_of(-start + step - 1, step);
  const std::int64_t end = start >= limit ? 0 : floor_of(limit - 1 - start, step) + 1;
  const auto bounded = [count](std::int64_t x) { return static_cast<int>(std::clamp<std::int64_t>(x, 0, count)); };
  return {bounded(begin), std::max(bounded(begin), bounded(end))};
}

// Uses 16.16 fixed point. In each row, the pixels that have a source are contiguous.
template <int kChannels>
void fixed_point(const memory::PixelView& in, const AffineMatrix& m, const Colour& fill, memory::PixelBuffer& out) {
  const std::int64_t step_x = fixed(m[0]), step_y = fixed(m[3]), down_x = fixed(m[1]), down_y = fixed(m[4]);
  std::int64_t start_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), start_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const std::int64_t limit_x = std::int64_t{in.width} << 16, limit_y = std::int64_t{in.height} << 16;
  const auto stride = static_cast<std::int64_t>(in.stride);
  for (int y = 0; y < out.height(); ++y, start_x += down_x, start_y += down_y) {
    std::uint8_t* const to = out.row(y);
    const Run columns = inside(start_x, step_x, limit_x, out.width());
    const Run rows = inside(start_y, step_y, limit_y, out.width());
    const int begin = std::min(std::max(columns.begin, rows.begin), out.width());
    const int end = std::max(begin, std::min(columns.end, rows.end));
    fill_pixels(to, begin, kChannels, fill);
    fill_pixels(to + end * kChannels, out.width() - end, kChannels, fill);
    if (begin == end) continue;
    std::int64_t from_x = start_x + begin * step_x, from_y = start_y + begin * step_y;
    if (step_x == 1 << 16 && step_y == 0) {
      std::memcpy(to + begin * kChannels, in.data + (from_y >> 16) * stride + (from_x >> 16) * kChannels,
                  static_cast<std::size_t>((end - begin) * kChannels));
      continue;
    }
    for (int x = begin; x < end; ++x, from_x += step_x, from_y += step_y)
      copy_pixel<kChannels>(in.data + (from_y >> 16) * stride + (from_x >> 16) * kChannels, to + x * kChannels);
  }
}

// For images that are too large for fixed point: pixel positions are computed by adding steps.
template <int kChannels>
void summed(const memory::PixelView& in, const AffineMatrix& m, const Colour& fill, memory::PixelBuffer& out) {
  double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5, row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int y = 0; y < out.height(); ++y, row_x += m[1], row_y += m[4]) {
    std::uint8_t* const to = out.row(y);
    double x_coordinate = row_x, y_coordinate = row_y;
    for (int x = 0; x < out.width(); ++x, x_coordinate += m[0], y_coordinate += m[3]) {
      const int column = pixel_of(x_coordinate, in.width), row = pixel_of(y_coordinate, in.height);
      const bool found = column >= 0 && row >= 0;
      copy_pixel<kChannels>(found ? in.row(row) + column * kChannels : fill.data(), to + x * kChannels);
    }
  }
}

template <int kChannels>
void find(const memory::PixelView& in, const AffineMatrix& matrix, const Colour& fill, std::vector<int>& columns,
          memory::PixelBuffer& out) {
  if (matrix[1] == 0 && matrix[3] == 0) return scale<kChannels>(in, matrix, fill, columns, out);
  if (fits_fixed(matrix, out.width(), out.height())) return fixed_point<kChannels>(in, matrix, fill, out);
  summed<kChannels>(in, matrix, fill, out);
}

}  // namespace

void affine_nearest(const memory::PixelView& in, const AffineMatrix& matrix, const Colour& fill,
                    std::vector<int>& columns, memory::PixelBuffer& out) {
  in.channels == 3 ? find<3>(in, matrix, fill, columns, out) : find<1>(in, matrix, fill, columns, out);
}

}  // namespace feedline::transform
