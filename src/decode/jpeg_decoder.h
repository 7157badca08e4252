// SPDX-License-Identifier: Apache-2.0
#pragma once

// JPEG through libjpeg-turbo: accurate DCT, fancy upsampling, and of a region only the columns and rows it needs.

#include <memory>

#include "decode/codec.h"

namespace feedline::decode {

// Keeps one libjpeg decompressor for all images. Damage that libjpeg only warns of is an error here where it costs
// pixels; oddities that do not (unknown markers, bytes between segments or after the end) are not.
class JpegDecoder final : public Codec {
 public:
  JpegDecoder();
  ~JpegDecoder() override;

  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace feedline::decode
