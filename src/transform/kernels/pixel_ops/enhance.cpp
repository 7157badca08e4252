// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/enhance.h"

#include <cstring>

#include "base/check.h"
#include "transform/kernels/pixel_ops/tables.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

std::size_t samples_per_row(const memory::PixelView& view) {
  return static_cast<std::size_t>(view.width) * static_cast<std::size_t>(view.channels);
}

// Blends with a constant, using a table.
Result<void> blend_with(const memory::PixelView& in, int value, double factor, memory::PixelBuffer& out) {
  std::uint8_t every[256], values[256];
  for (int i = 0; i < 256; ++i) every[i] = static_cast<std::uint8_t>(i);
  std::memset(values, value, sizeof values);
  ByteTable table;
  active_kernels().pixels->blend(values, every, 256, static_cast<float>(factor), table);
  return look_up(in, table, out);
}

std::uint64_t sum_of_grey(const memory::PixelView& in) {
  const PixelKernels& kernels = *active_kernels().pixels;
  std::uint64_t sum = 0;
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t* const row = in.row(y);
    if (in.channels == 3) {
      sum += kernels.sum_luma(row, static_cast<std::size_t>(in.width));
    } else {
      for (int x = 0; x < in.width; ++x) sum += row[x];
    }
  }
  return sum;
}

}  // namespace

Result<void> copy(const memory::PixelView& in, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  if (out.row(0) == in.data) return {};
  for (int y = 0; y < in.height; ++y) std::memcpy(out.row(y), in.row(y), samples_per_row(in));
  return {};
}

Result<void> adjust_brightness(const memory::PixelView& in, double factor, memory::PixelBuffer& out) {
  return blend_with(in, 0, factor, out);
}

Result<void> adjust_contrast(const memory::PixelView& in, double factor, memory::PixelBuffer& out) {
  const double pixels = static_cast<double>(in.width) * in.height;
  const int mean = static_cast<int>(static_cast<double>(sum_of_grey(in)) / pixels + 0.5);
  return blend_with(in, mean, factor, out);
}

Result<void> adjust_saturation(const memory::PixelView& in, double factor, memory::PixelBuffer& out) {
  if (in.channels == 1) return copy(in, out);
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, 3));
  const PixelKernels& kernels = *active_kernels().pixels;
  for (int y = 0; y < in.height; ++y)
    kernels.saturate(in.row(y), static_cast<std::size_t>(in.width), static_cast<float>(factor), out.row(y));
  return {};
}

Result<void> adjust_hue(const memory::PixelView& in, double factor, memory::PixelBuffer& out) {
  if (in.channels == 1) return copy(in, out);
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, 3));
  const std::uint8_t shift = hue_shift(factor);
  const PixelKernels& kernels = *active_kernels().pixels;
  for (int y = 0; y < in.height; ++y)
    kernels.shift_hue(in.row(y), static_cast<std::size_t>(in.width), shift, out.row(y));
  return {};
}

// conversion from int32 to uint8 wraps in numpy, as does adding bytes
std::uint8_t hue_shift(double factor) {
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(factor * 255) & 0xff);
}

Result<void> adjust_sharpness(const memory::PixelView& in, double factor, AlignedVector<std::uint8_t>& row,
                              memory::PixelBuffer& out) {
  // no pixel has all neighbours, so Pillow's smoothing changes nothing
  if (in.width < 3 || in.height < 3) return copy(in, out);
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  FEEDLINE_CHECK(out.row(0) != in.data);
  const std::size_t bytes = samples_per_row(in);
  const auto edge = static_cast<std::size_t>(in.channels);
  row.resize(bytes);
  const PixelKernels& kernels = *active_kernels().pixels;
  std::memcpy(out.row(0), in.row(0), bytes);
  for (int y = 1; y + 1 < in.height; ++y) {
    const std::uint8_t* const rows[] = {in.row(y - 1), in.row(y), in.row(y + 1)};
    kernels.smooth(rows, in.width, in.channels, row.data());
    std::memcpy(out.row(y), rows[1], edge);
    std::memcpy(out.row(y) + bytes - edge, rows[1] + bytes - edge, edge);
    kernels.blend(row.data() + edge, rows[1] + edge, bytes - 2 * edge, static_cast<float>(factor), out.row(y) + edge);
  }
  std::memcpy(out.row(in.height - 1), in.row(in.height - 1), bytes);
  return {};
}

}  // namespace feedline::transform
