// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/tables.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

std::size_t samples_per_row(const memory::PixelView& view) {
  return static_cast<std::size_t>(view.width) * static_cast<std::size_t>(view.channels);
}

Result<void> fold(const memory::PixelView& in, std::uint8_t threshold, std::uint8_t flip, std::uint8_t mask,
                  memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  const PixelKernels& kernels = *active_kernels().pixels;
  for (int y = 0; y < in.height; ++y) kernels.fold(in.row(y), samples_per_row(in), threshold, flip, mask, out.row(y));
  return {};
}

Result<void> look_up_channels(const memory::PixelView& in, const ByteTable (&tables)[3], memory::PixelBuffer& out) {
  if (in.channels == 1) return look_up(in, tables[0], out);
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  active_kernels().pixels->look_up_rgb(in, tables, out.row(0), out.stride());
  return {};
}

ByteRanges ranges_of(const memory::PixelView& in) {
  const PixelKernels& kernels = *active_kernels().pixels;
  ByteRanges ranges;
  for (int y = 0; y < in.height; ++y) {
    if (in.channels == 3) {
      kernels.widen_rgb(in.row(y), static_cast<std::size_t>(in.width), ranges);
    } else {
      const auto [low, high] = std::minmax_element(in.row(y), in.row(y) + in.width);
      ranges.low[0] = std::min(ranges.low[0], *low);
      ranges.high[0] = std::max(ranges.high[0], *high);
    }
  }
  return ranges;
}

void spread(int low, int high, ByteTable& table) {
  if (high <= low) return std::iota(std::begin(table), std::end(table), std::uint8_t{0});
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  for (int i = 0; i < 256; ++i)
    table[i] = static_cast<std::uint8_t>(std::clamp(static_cast<int>(i * scale + offset), 0, 255));
}

using Histogram = std::uint32_t[256];

// Neighbouring bytes use different histograms, because equal bytes in sequence would otherwise wait for each other's
// increment.
void count_bytes(const memory::PixelView& in, Histogram (&histograms)[3]) {
  Histogram odd[3] = {};
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t* row = in.row(y);
    int x = 0;
    for (; x + 1 < in.width; x += 2, row += 2 * in.channels)
      for (int c = 0; c < in.channels; ++c) {
        ++histograms[c][row[c]];
        ++odd[c][row[in.channels + c]];
      }
    for (int c = 0; x < in.width && c < in.channels; ++c) ++histograms[c][row[c]];
  }
  for (int c = 0; c < in.channels; ++c)
    for (int i = 0; i < 256; ++i) histograms[c][i] += odd[c][i];
}

void flatten(const Histogram& histogram, ByteTable& table) {
  const std::uint64_t total = std::accumulate(std::begin(histogram), std::end(histogram), std::uint64_t{0});
  const auto last = std::find_if(std::rbegin(histogram), std::rend(histogram), [](auto count) { return count > 0; });
  const std::uint64_t step = (total - *last) / 255;
  if (step == 0) return std::iota(std::begin(table), std::end(table), std::uint8_t{0});
  std::uint64_t sum = step / 2;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<std::uint8_t>(std::min<std::uint64_t>(sum / step, 255));
    sum += histogram[i];
  }
}

}  // namespace

Result<void> look_up(const memory::PixelView& in, const ByteTable& table, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  active_kernels().pixels->look_up(in, table, out.row(0), out.stride());
  return {};
}

Result<void> autocontrast(const memory::PixelView& in, memory::PixelBuffer& out) {
  const ByteRanges ranges = ranges_of(in);
  ByteTable tables[3];
  for (int c = 0; c < in.channels; ++c) spread(ranges.low[c], ranges.high[c], tables[c]);
  return look_up_channels(in, tables, out);
}

Result<void> equalize(const memory::PixelView& in, memory::PixelBuffer& out) {
  Histogram histograms[3] = {};
  count_bytes(in, histograms);
  ByteTable tables[3];
  for (int c = 0; c < in.channels; ++c) flatten(histograms[c], tables[c]);
  return look_up_channels(in, tables, out);
}

Result<void> invert(const memory::PixelView& in, memory::PixelBuffer& out) { return fold(in, 0, 255, 255, out); }

Result<void> posterize(const memory::PixelView& in, int bits, memory::PixelBuffer& out) {
  FEEDLINE_CHECK(bits >= 0 && bits <= 8);
  return fold(in, 0, 0, static_cast<std::uint8_t>(0xff00 >> bits), out);
}

Result<void> solarize(const memory::PixelView& in, double threshold, memory::PixelBuffer& out) {
  if (!(threshold <= 255)) return copy(in, out);
  return fold(in, static_cast<std::uint8_t>(std::max(std::ceil(threshold), 0.0)), 255, 255, out);
}

Result<void> solarize_add(const memory::PixelView& in, int add, int threshold, memory::PixelBuffer& out) {
  add = std::clamp(add, -255, 255);
  ByteTable table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(i < threshold ? std::clamp(i + add, 0, 255) : i);
  return look_up(in, table, out);
}

}  // namespace feedline::transform
