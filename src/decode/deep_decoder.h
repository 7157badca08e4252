// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes images to the values that their files store, unscaled, of any dtype and number of channels: PNGs and TIFFs.
// Images of other formats have 8 bits; their pixels are those of ImageDecoder, with 1 or 3 channels.

#include <cstddef>
#include <memory>
#include <span>

#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/deep_pixels.h"

namespace feedline::decode {

struct DeepHeader {
  int width = 0;
  int height = 0;
  int channels = 1;
  DType dtype = DType::kUint8;
};

// Not thread-safe. Each thread should reuse one decoder for all images.
class DeepDecoder {
 public:
  DeepDecoder();
  ~DeepDecoder();
  DeepDecoder(DeepDecoder&&) noexcept;
  DeepDecoder& operator=(DeepDecoder&&) noexcept;

  // Reads the header of page `page`, from 0, of a TIFF; other images have one page. `bytes` must stay valid until
  // decode(). applies_exif: the image is rotated according to its orientation, and width, height and regions refer to
  // the rotated image. kData: the content is not an image, or it is stored in a way that is not supported.
  Result<DeepHeader> open(std::span<const std::byte> bytes, int page, bool applies_exif);
  // Writes the pixels of `region` of the opened image to `out`. The result is valid as long as `out` is not changed.
  // Requires: open() succeeded, and the region is inside the image.
  Result<memory::DeepView> decode(const Box& region, memory::PixelBuffer& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode
