// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes WebP with libwebp: lossy images with fancy upsampling, lossless images, and the first frame of animations.
// Alpha is dropped.

#include "decode/codec.h"

namespace feedline::decode {

class WebpDecoder final : public Codec {
 public:
  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;

 private:
  // An image in the file and its position on the canvas.
  struct Frame {
    std::span<const std::byte> bytes;
    Box location;
  };
  Result<Frame> first_frame() const;
  // Decodes `part`, in canvas pixels, into rows of `target`, starting at (x, y). Requires: `part` is inside the frame.
  Result<void> decode_part(const Frame& frame, const Box& part, memory::PixelBuffer& target);

  std::span<const std::byte> bytes_;
  ImageHeader header_;
  bool animated_ = false;
  memory::PixelBuffer part_;
};

extern const ImageCodec kWebpCodec;

}  // namespace feedline::decode
