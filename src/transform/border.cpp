// SPDX-License-Identifier: Apache-2.0
#include "transform/border.h"

#include <algorithm>
#include <cstring>

#include "transform/kernels/border_source.h"

namespace feedline::transform {
namespace {

void fill_pixels(std::uint8_t* out, int count, int channels, const std::array<std::uint8_t, 3>& fill) {
  for (int x = 0; x < count; ++x)
    for (int c = 0; c < channels; ++c) *out++ = fill[static_cast<std::size_t>(c)];
}

}  // namespace

Result<void> pad(memory::PixelView in, const PadStep& step, std::vector<int>& map, memory::PixelBuffer& out) {
  const Box& window = step.window;
  const int channels = in.channels;
  FEEDLINE_CHECK_OK(out.resize(window.width, window.height, channels));
  map.resize(static_cast<std::size_t>(window.width));
  for (int x = 0; x < window.width; ++x)
    map[static_cast<std::size_t>(x)] = border_source(window.left + x - step.padding.left, in.width, step.mode);
  // [begin, end): the image's part of the window
  const int begin = std::clamp(step.padding.left - window.left, 0, window.width);
  const int end = std::clamp(step.padding.left + in.width - window.left, begin, window.width);
  for (int y = 0; y < window.height; ++y) {
    std::uint8_t* row = out.row(y);
    const int source_y = border_source(window.top + y - step.padding.top, in.height, step.mode);
    if (source_y < 0) {
      fill_pixels(row, window.width, channels, step.fill);
      continue;
    }
    const std::uint8_t* source = in.row(source_y);
    const auto copy_mapped = [&](int from, int to) {
      for (int x = from; x < to; ++x) {
        const int source_x = map[static_cast<std::size_t>(x)];
        std::uint8_t* pixel = row + x * channels;
        if (source_x < 0) fill_pixels(pixel, 1, channels, step.fill);
        for (int c = 0; c < channels && source_x >= 0; ++c) pixel[c] = source[source_x * channels + c];
      }
    };
    copy_mapped(0, begin);
    if (end > begin)
      std::memcpy(row + begin * channels, source + map[static_cast<std::size_t>(begin)] * channels,
                  static_cast<std::size_t>(end - begin) * static_cast<std::size_t>(channels));
    copy_mapped(end, window.width);
  }
  return {};
}

}  // namespace feedline::transform
