// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decoded images, passed from decode to transform: 8 bits, with 1 or 3 interleaved channels (HWC).

#include <cstddef>
#include <cstdint>
#include <memory>

#include "feedline/error.h"

namespace feedline::memory {

struct PixelView {
  const std::uint8_t* data = nullptr;  // top left pixel
  int width = 0;
  int height = 0;
  int channels = 0;
  std::size_t stride = 0;  // bytes between rows

  const std::uint8_t* row(int y) const { return data + static_cast<std::size_t>(y) * stride; }
};

// Returns the size of the pixels, without row padding.
inline std::uint64_t bytes_of(const PixelView& view) {
  return static_cast<std::uint64_t>(view.width) * static_cast<std::uint64_t>(view.height) *
         static_cast<std::uint64_t>(view.channels);
}

// A growable image that a thread reuses, so that samples need no allocation once the largest image has been processed.
// Not thread-safe.
class PixelBuffer {
 public:
  // Each row is padded with at least kRowSlack readable and writable bytes, so that kernels may load and store whole
  // vectors beyond the last pixel. The contents are unspecified. kData if the size exceeds kMaxPixels or kMostBytes.
  Result<void> resize(int width, int height, int channels);

  std::uint8_t* row(int y) { return data_.get() + static_cast<std::size_t>(y) * stride_; }
  const std::uint8_t* row(int y) const { return data_.get() + static_cast<std::size_t>(y) * stride_; }
  int width() const { return width_; }
  int height() const { return height_; }
  int channels() const { return channels_; }
  std::size_t stride() const { return stride_; }
  std::size_t capacity_bytes() const { return capacity_; }
  PixelView view() const { return {data_.get(), width_, height_, channels_, stride_}; }

  static constexpr std::size_t kRowSlack = 64;  // one AVX-512 vector
  // 2 x Pillow's decompression-bomb limit (MAX_IMAGE_PIXELS = 1 GiB / 4 / 3), above which Pillow raises instead of
  // warning
  static constexpr std::int64_t kMaxPixels = 2 * (std::int64_t{1024} * 1024 * 1024 / 4 / 3);
  static constexpr std::int64_t kMostBytes = 8 * kMaxPixels;

 private:
  struct Free {
    void operator()(std::uint8_t* data) const;
  };
  std::unique_ptr<std::uint8_t[], Free> data_;
  std::size_t capacity_ = 0;
  int width_ = 0, height_ = 0, channels_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace feedline::memory
