// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interface between ImageDecoder and the image formats. The contract is ImageDecoder's, which selects the codec.

#include <cstddef>
#include <span>

#include "decode/decoder.h"

namespace feedline::decode {

// The arguments of a decode().
using PixelTask = ImageDecoder::Task;

class Codec {
 public:
  virtual ~Codec() = default;

  // Reads the header. Allocates nothing that depends on the header's width and height.
  virtual Result<ImageHeader> open(std::span<const std::byte> bytes) = 0;
  // `out` already has the region's size and the mode's channels. Requires: the last open() succeeded, decode() has not
  // been called since, and the region is inside the image.
  virtual Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) = 0;
  virtual bool decode_planes(const Box&, ColorMode, const memory::Coarseness&, memory::Planes&) { return false; }
};

inline constexpr int channels_of(ColorMode mode) { return mode == ColorMode::kRgb ? 3 : 1; }

// kData: images of this size are not decoded.
Result<void> check_size(std::int64_t width, std::int64_t height);
std::unexpected<Error> decode_error(std::string what);

}  // namespace feedline::decode
