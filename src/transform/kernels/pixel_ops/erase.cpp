// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/erase.h"

#include <cstring>

#include "base/check.h"

namespace feedline::transform {

void erase(const pixel_op::Erase& erase, memory::PixelBuffer& image) {
  const Box& box = erase.box;
  FEEDLINE_CHECK(box.left >= 0 && box.top >= 0 && box.left + box.width <= image.width() &&
                 box.top + box.height <= image.height());
  const int channels = image.channels();
  const auto bytes = static_cast<std::size_t>(box.width) * static_cast<std::size_t>(channels);
  const bool noisy = !erase.noise.empty();
  FEEDLINE_CHECK(!noisy || erase.noise.size() == bytes * static_cast<std::size_t>(box.height));
  for (int y = 0; y < box.height; ++y) {
    std::uint8_t* out = image.row(box.top + y) + box.left * channels;
    if (noisy) {
      std::memcpy(out, erase.noise.data() + static_cast<std::size_t>(y) * bytes, bytes);
    } else if (channels == 1) {
      std::memset(out, erase.value[0], bytes);
    } else {
      for (int x = 0; x < box.width; ++x, out += 3) std::memcpy(out, erase.value.data(), 3);
    }
  }
}

}  // namespace feedline::transform
