// SPDX-License-Identifier: Apache-2.0
#pragma once

// PNG through libspng, row by row: no more of the image is in memory than the region asked for.

#include <cstdint>
#include <span>

#include "decode/codec.h"
#include "decode/png/png_memory.h"
#include "decode/png/png_pixels.h"
#include "decode/png/png_stream.h"
#include "memory/record.h"

struct spng_ctx;

namespace feedline::decode {

class PngDecoder final : public Codec {
 public:
  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;
  // The whole of the opened image as labels: see labels.h. Requires: grey or palette; `out` has its size, and as many
  // channels as a label has bytes.
  const PngHeader& header() const { return header_; }
  Result<void> decode_labels(memory::PixelBuffer& out);

 private:
  Result<void> decode_prepared(const Box& region, memory::PixelBuffer& out);
  Result<void> decode_rows(spng_ctx* context, const Box& region, memory::PixelBuffer& out);
  Result<void> decode_passes(spng_ctx* context, const Box& region, memory::PixelBuffer& out);
  std::unexpected<Error> failure(int status, std::uint32_t rows) const;

  std::span<const std::byte> bytes_;
  PngHeader header_;
  PngStream stream_;
  PngPixels pixels_;
  PngMemory memory_;
  memory::ByteBuffer raw_, row_;  // a row as stored, and one in the colours asked for
};

}  // namespace feedline::decode
