// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes WebP with libwebp: lossy with fancy upsampling, lossless, with or without alpha (dropped), and the first
// frame of an animation.

#include "decode/codec.h"

namespace feedline::decode {

class WebpDecoder final : public Codec {
 public:
  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;

 private:
  // An image of the file and its position on the canvas.
  struct Frame {
    std::span<const std::byte> bytes;
    Box place;
  };
  Result<Frame> first_frame() const;
  // Decodes `part`, in canvas pixels, into rows of `target` from (x, y) on. Requires: part is inside the frame.
  Result<void> decode_part(const Frame& frame, const Box& part, memory::PixelBuffer& target);

  std::span<const std::byte> bytes_;
  ImageHeader header_;
  bool animated_ = false;
  memory::PixelBuffer part_;
};

extern const ImageCodec kWebpCodec;

}  // namespace feedline::decode
