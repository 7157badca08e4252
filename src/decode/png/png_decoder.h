// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes PNGs. All rows are inflated at once; libspng decodes large and doubtful files row by row, so that only the
// requested region is in memory.

#include <cstdint>
#include <span>

#include "decode/codec.h"
#include "decode/png/png_memory.h"
#include "decode/png/png_pixels.h"
#include "decode/png/png_rows.h"
#include "decode/png/png_stream.h"
#include "memory/record.h"

struct spng_ctx;

namespace feedline::decode {

class PngDecoder final : public Codec {
 public:
  enum class Way : std::uint8_t { kBest, kLibspng };  // libspng decodes everything, for comparison
  explicit PngDecoder(Way way = Way::kBest) : way_(way) {}

  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;
  // Decodes the whole opened image as labels: see labels.h. Requires: the image is grey or has a palette, and `out` has
  // its size and as many channels as a label has bytes.
  const PngHeader& header() const { return header_; }
  Result<void> decode_labels(memory::PixelBuffer& out);
  // Decodes the stored samples of a region, or the colours of a palette. Requires: `out` has the region's size and as
  // many channels as a pixel has bytes, 3 for a palette.
  Result<void> decode_samples(const Box& region, memory::PixelBuffer& out);

  // Returns whether libspng decoded the last image.
  bool used_libspng() const { return used_libspng_; }

 private:
  Result<void> decode_prepared(const Box& region, memory::PixelBuffer& out);
  // Returns false if libspng must decode the image from the beginning.
  bool decode_at_once(const Box& region, memory::PixelBuffer& out);
  Result<void> decode_by_libspng(const Box& region, memory::PixelBuffer& out);
  Result<void> decode_rows(spng_ctx* context, const Box& region, memory::PixelBuffer& out);
  Result<void> decode_passes(spng_ctx* context, const Box& region, memory::PixelBuffer& out);
  int rows_to_read(const Box& region) const;
  // Writes the pixels of row `y` of an interlacing pass; they are not adjacent in the image.
  void scatter(const PngPass& pass, int y, const std::uint8_t* raw, const Box& region, memory::PixelBuffer& out);
  std::unexpected<Error> failure(int status, std::uint32_t rows) const;

  const Way way_;
  std::span<const std::byte> bytes_;
  PngHeader header_;
  PngStream stream_;
  PngPixels pixels_;
  PngRows rows_;
  bool used_libspng_ = false;
  PngMemory memory_;
  memory::ByteBuffer raw_, row_;  // a row as stored, and one in the requested colours
};

extern const ImageCodec kPngCodec;

}  // namespace feedline::decode
