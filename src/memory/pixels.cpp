// SPDX-License-Identifier: Apache-2.0
#include "memory/pixels.h"

#include <cstdlib>

#include "base/check.h"
#include "memory/allocator.h"
#include "memory/deep_pixels.h"

namespace feedline::memory {

void PixelBuffer::Free::operator()(std::uint8_t* data) const { std::free(data); }

Result<void> PixelBuffer::resize(int width, int height, int channels) {
  FEEDLINE_CHECK(width > 0 && height > 0 && channels >= 1 && channels <= DeepView::kMostChannels * 8);
  if (std::int64_t{width} * height > kMaxPixels)
    return data_error("image of " + std::to_string(width) + " x " + std::to_string(height) +
                          " pixels is over the limit of " + std::to_string(kMaxPixels) + " pixels",
                      "decode");
  if (std::int64_t{width} * height * channels > kMostBytes)
    return data_error("image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels of " +
                          std::to_string(channels) + " bytes is over the limit of " + std::to_string(kMostBytes) +
                          " bytes",
                      "decode");
  const auto align = [](std::size_t n) {
    return (n + Allocator::kAlignment - 1) / Allocator::kAlignment * Allocator::kAlignment;
  };
  const std::size_t stride = align(static_cast<std::size_t>(width) * static_cast<std::size_t>(channels) + kRowSlack);
  const std::size_t needed = stride * static_cast<std::size_t>(height) + kRowSlack;
  if (needed > capacity_) {
    data_.reset();  // before the new one, so that both never exist at once
    capacity_ = 0;
    data_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(Allocator::kAlignment, align(needed))));
    if (!data_) return data_error("no memory for an image of " + std::to_string(needed) + " bytes", "decode");
    capacity_ = needed;
  }
  width_ = width;
  height_ = height;
  channels_ = channels;
  stride_ = stride;
  return {};
}

}  // namespace feedline::memory
