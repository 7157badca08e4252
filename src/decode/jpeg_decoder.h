// SPDX-License-Identifier: Apache-2.0
#pragma once

// JPEG: accurate DCT, fancy upsampling, and of a region only the columns and rows it needs. libjpeg-turbo reads every
// header and decodes what our own baseline decoder leaves to it; both give the same pixels and errors.

#include <cstdint>
#include <memory>

#include "decode/codec.h"

namespace feedline::decode {

// What decodes the files that both can decode. kLibjpeg is for comparing.
enum class JpegPath : std::uint8_t { kBaseline, kLibjpeg };

// Keeps one libjpeg decompressor for all images. Damage that libjpeg only warns of is an error here where it costs
// pixels; oddities that do not (unknown markers, bytes between segments or after the end) are not.
class JpegDecoder final : public Codec {
 public:
  explicit JpegDecoder(JpegPath path = JpegPath::kBaseline);
  ~JpegDecoder() override;

  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;

  // What gave the last decode() its result.
  JpegPath used() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace feedline::decode
