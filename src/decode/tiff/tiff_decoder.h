// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes regions of TIFFs to their stored values: only the tiles or strips that the region touches are decompressed.

#include <cstddef>
#include <memory>
#include <span>

#include "decode/deep_decoder.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/tiff/tiff_codecs.h"
#include "decode/tiff/tiff_directory.h"
#include "memory/record.h"

struct libdeflate_decompressor;
struct ZSTD_DCtx_s;

namespace feedline::decode {

// Not thread-safe. Each thread reuses one object.
class TiffDecoder {
 public:
  // As DeepDecoder::open(), without rotation.
  Result<DeepHeader> open(std::span<const std::byte> file, int page);
  int orientation() const { return directory_.orientation; }  // EXIF, 1 to 8
  // Requires: open() succeeded, the region is inside the image, and `out` has the region's size and as many channels as
  // a pixel has bytes.
  Result<void> decode(const Box& region, memory::PixelBuffer& out);

 private:
  struct Chunk {
    std::uint64_t index = 0;
    int left = 0, top = 0;           // in the image
    int first_row = 0, end_row = 0;  // the rows of the chunk that are needed
    int first_column = 0, end_column = 0;
    int channel = 0;  // the first one
  };
  std::uint64_t row_bytes() const;  // of a chunk
  Result<void> read_chunk(const Chunk& chunk, const Box& region, memory::PixelBuffer& out);
  // Returns the values of a chunk up to the last needed row, in the machine's byte order. Empty: the file has none.
  Result<std::span<const std::byte>> decode_chunk(const Chunk& chunk);
  Result<std::span<const std::byte>> stored_chunk(const Chunk& chunk) const;
  Result<std::uint64_t> decompress(const Chunk& chunk, std::span<const std::byte> stored, std::span<std::byte> values);
  void undo_predictor(const Chunk& chunk, std::span<std::byte> values);
  Result<std::span<const std::byte>> decode_jpeg(const Chunk& chunk, std::span<const std::byte> stored);
  void copy_chunk(const Chunk& chunk, std::span<const std::byte> values, const Box& region,
                  memory::PixelBuffer& out) const;
  std::unexpected<Error> damaged(const Chunk& chunk, const std::string& what) const;

  std::span<const std::byte> file_;
  TiffDirectory directory_;
  memory::ByteBuffer values_, row_;
  LzwDecoder lzw_;
  struct FreeInflater {
    void operator()(libdeflate_decompressor* inflater) const;
  };
  struct FreeZstd {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<libdeflate_decompressor, FreeInflater> inflater_;
  std::unique_ptr<ZSTD_DCtx_s, FreeZstd> zstd_;
  JpegDecoder jpeg_;  // not created later, because creating it reads the environment
  memory::ByteBuffer jpeg_file_;
  memory::PixelBuffer jpeg_pixels_;
};

}  // namespace feedline::decode
