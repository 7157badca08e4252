// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads an image file directory (IFD) of a TIFF (TIFF 6.0) or a BigTIFF: the layout of one page.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::decode {

enum class TiffCompression : std::uint16_t {
  kNone = 1,
  kLzw = 5,
  kJpeg = 7,
  kDeflate = 8,
  kPackBits = 32773,
  kOldDeflate = 32946,
  kZstd = 50000,
};
enum class TiffPredictor : std::uint16_t { kNone = 1, kDifference = 2, kFloat = 3 };

// The values of a tag, which may be millions and are read one by one from the file.
class TiffNumbers {
 public:
  TiffNumbers() = default;
  TiffNumbers(const std::byte* values, std::uint64_t count, std::size_t bytes, bool is_big)
      : values_(values), count_(count), bytes_(bytes), is_big_(is_big) {}
  std::uint64_t size() const { return count_; }
  std::uint64_t operator[](std::uint64_t i) const;  // Requires: i < size()

 private:
  const std::byte* values_ = nullptr;
  std::uint64_t count_ = 0;
  std::size_t bytes_ = 0;  // per value: 1, 2, 4 or 8
  bool is_big_ = false;
};

// A chunk is a tile, or a strip, which is as wide as the image.
struct TiffDirectory {
  int width = 0, height = 0;
  int channels = 1;
  DType dtype = DType::kUint8;
  bool is_big_endian = false;
  bool is_planar = false;  // each channel has its own chunks
  bool has_tiles = false;
  int chunk_width = 0, chunk_height = 0;
  std::uint64_t chunks_across = 0, chunks_down = 0;
  TiffCompression compression = TiffCompression::kNone;
  TiffPredictor predictor = TiffPredictor::kNone;
  int photometric = 1;
  int orientation = 1;  // EXIF, 1 to 8
  TiffNumbers offsets, byte_counts;
  std::span<const std::byte> jpeg_tables;

  std::string_view chunk_name() const { return has_tiles ? "tile" : "strip"; }
  int chunk_channels() const { return is_planar ? 1 : channels; }
};

// Reads the directory of page `page`, from 0. Reads no pixels, and allocates nothing. kData: the file is damaged, has
// fewer pages, or stores images in a way that is not supported; the message names the tag.
Result<TiffDirectory> read_tiff_directory(std::span<const std::byte> file, int page);

}  // namespace feedline::decode
