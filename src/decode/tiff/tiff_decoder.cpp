// SPDX-License-Identifier: Apache-2.0
#include "decode/tiff/tiff_decoder.h"

#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "decode/codec.h"

namespace feedline::decode {
namespace {

constexpr std::uint64_t kMaxInflation = 1032;  // of deflate
constexpr std::uint64_t kMostChunkBytes = memory::PixelBuffer::kMostBytes;
constexpr std::size_t kMaxRetained = std::size_t{64} << 20;

}  // namespace

void TiffDecoder::FreeInflater::operator()(libdeflate_decompressor* inflater) const {
  libdeflate_free_decompressor(inflater);
}
void TiffDecoder::FreeZstd::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

Result<DeepHeader> TiffDecoder::open(std::span<const std::byte> file, int page) {
  file_ = file;
  FEEDLINE_TRY(directory_, read_tiff_directory(file, page));
  return DeepHeader{directory_.width, directory_.height, directory_.channels, directory_.dtype};
}

std::uint64_t TiffDecoder::row_bytes() const {
  return static_cast<std::uint64_t>(directory_.chunk_width) * static_cast<std::uint64_t>(directory_.chunk_channels()) *
         size_of(directory_.dtype);
}

std::unexpected<Error> TiffDecoder::damaged(const Chunk& chunk, const std::string& what) const {
  return decode_error("damaged TIFF: " + std::string(directory_.chunk_name()) + " " + std::to_string(chunk.index) +
                      " " + what);
}

Result<void> TiffDecoder::decode(const Box& region, memory::PixelBuffer& out) {
  const TiffDirectory& d = directory_;
  const int right = region.left + region.width, bottom = region.top + region.height;
  for (int plane = 0; plane < (d.is_planar ? d.channels : 1); ++plane)
    for (int row = region.top / d.chunk_height; row <= (bottom - 1) / d.chunk_height; ++row)
      for (int column = region.left / d.chunk_width; column <= (right - 1) / d.chunk_width; ++column) {
        Chunk chunk{.left = column * d.chunk_width, .top = row * d.chunk_height, .channel = plane};
        chunk.index =
            (static_cast<std::uint64_t>(plane) * d.chunks_down + static_cast<std::uint64_t>(row)) * d.chunks_across +
            static_cast<std::uint64_t>(column);
        chunk.first_row = std::max(region.top - chunk.top, 0);
        chunk.end_row = std::min(bottom - chunk.top, d.chunk_height);
        chunk.first_column = std::max(region.left - chunk.left, 0);
        chunk.end_column = std::min(right - chunk.left, d.chunk_width);
        FEEDLINE_CHECK_OK(read_chunk(chunk, region, out));
      }
  for (memory::ByteBuffer* const buffer : {&values_, &jpeg_file_})
    if (buffer->capacity() > kMaxRetained) *buffer = {};
  return {};
}

Result<void> TiffDecoder::read_chunk(const Chunk& chunk, const Box& region, memory::PixelBuffer& out) {
  FEEDLINE_TRY(const auto values, decode_chunk(chunk));
  copy_chunk(chunk, values, region, out);
  return {};
}

Result<std::span<const std::byte>> TiffDecoder::stored_chunk(const Chunk& chunk) const {
  const TiffDirectory& d = directory_;
  const std::uint64_t at = d.offsets[chunk.index];
  std::uint64_t bytes =
      d.byte_counts.size() == 0 ? row_bytes() * static_cast<std::uint64_t>(d.chunk_height) : d.byte_counts[chunk.index];
  if (bytes == 0) return std::span<const std::byte>();  // sparse files
  if (at > file_.size() || bytes > file_.size() - at)
    return damaged(chunk, "is at byte " + std::to_string(at) + " with " + std::to_string(bytes) + " bytes (" +
                              (d.has_tiles ? "TileOffsets, TileByteCounts" : "StripOffsets, StripByteCounts") +
                              "), outside of the file of " + std::to_string(file_.size()) + " bytes");
  return file_.subspan(at, bytes);
}

Result<std::span<const std::byte>> TiffDecoder::decode_chunk(const Chunk& chunk) {
  const TiffDirectory& d = directory_;
  FEEDLINE_TRY(const auto stored, stored_chunk(chunk));
  if (stored.empty()) return stored;
  if (d.compression == TiffCompression::kJpeg) return decode_jpeg(chunk, stored);
  const auto is_too_large = [&](std::uint64_t rows) {
    return row_bytes() > kMostChunkBytes || rows > kMostChunkBytes / row_bytes();
  };
  const auto too_large = [&] {
    return damaged(chunk, "has " + std::to_string(d.chunk_width) + " x " + std::to_string(d.chunk_height) +
                              " pixels, over the limit of " + std::to_string(kMostChunkBytes) + " bytes");
  };
  if (is_too_large(1)) return too_large();
  const std::uint64_t needed = row_bytes() * static_cast<std::uint64_t>(chunk.end_row);
  const auto too_short = [&](std::uint64_t made) {
    return damaged(chunk, "has " + std::to_string(made) + " bytes of values instead of " + std::to_string(needed));
  };
  const bool swaps = d.is_big_endian != (std::endian::native == std::endian::big) && size_of(d.dtype) > 1 &&
                     d.predictor != TiffPredictor::kFloat;
  if (d.compression == TiffCompression::kNone) {
    if (stored.size() < needed) return too_short(stored.size());
    if (!swaps) return stored.first(needed);
  }
  if (is_too_large(static_cast<std::uint64_t>(d.chunk_height))) return too_large();
  const std::uint64_t whole = row_bytes() * static_cast<std::uint64_t>(d.chunk_height);
  FEEDLINE_TRY(const std::span<std::byte> values, values_.make_room(whole, kMostChunkBytes));
  FEEDLINE_TRY(const std::uint64_t made, decompress(chunk, stored, values));
  if (made < needed) return too_short(made);
  const std::span<std::byte> used = values.first(needed);
  const std::size_t before = static_cast<std::size_t>(row_bytes()) * static_cast<std::size_t>(chunk.first_row);
  if (swaps) swap_bytes(used.subspan(before), size_of(d.dtype));
  undo_predictor(chunk, used);
  return used;
}

Result<std::uint64_t> TiffDecoder::decompress(const Chunk& chunk, std::span<const std::byte> stored,
                                              std::span<std::byte> values) {
  const auto limit = [&] { return "holds more than its " + std::to_string(values.size()) + " bytes of values"; };
  switch (directory_.compression) {
    case TiffCompression::kLzw: {
      const auto made = lzw_.decode(stored, values);
      if (!made) return damaged(chunk, "has an invalid LZW code");
      return *made;
    }
    case TiffCompression::kPackBits: {
      const auto made = unpack_bits(stored, values);
      if (!made) return damaged(chunk, "ends inside a PackBits run");
      return *made;
    }
    case TiffCompression::kDeflate:
    case TiffCompression::kOldDeflate: {
      if (row_bytes() * static_cast<std::uint64_t>(chunk.end_row) / kMaxInflation > stored.size())
        return damaged(chunk, "has too few bytes for its values: " + std::to_string(stored.size()));
      if (!inflater_) inflater_.reset(libdeflate_alloc_decompressor());
      if (!inflater_) return decode_error("not enough memory for a TIFF decoder");
      std::size_t made = 0;
      switch (libdeflate_zlib_decompress(inflater_.get(), stored.data(), stored.size(), values.data(), values.size(),
                                         &made)) {
        case LIBDEFLATE_SUCCESS:
          return made;
        case LIBDEFLATE_INSUFFICIENT_SPACE:
          return damaged(chunk, limit());
        default:
          return damaged(chunk, "has damaged deflate data");
      }
    }
    case TiffCompression::kZstd: {
      if (!zstd_) zstd_.reset(ZSTD_createDCtx());
      if (!zstd_) return decode_error("not enough memory for a TIFF decoder");
      const std::size_t made =
          ZSTD_decompressDCtx(zstd_.get(), values.data(), values.size(), stored.data(), stored.size());
      if (ZSTD_isError(made) == 0) return made;
      if (std::string_view(ZSTD_getErrorName(made)) == "Destination buffer is too small")
        return damaged(chunk, limit());
      return damaged(chunk, std::string("has damaged zstd data: ") + ZSTD_getErrorName(made));
    }
    case TiffCompression::kNone:
    case TiffCompression::kJpeg:
      break;
  }
  const std::size_t count = std::min(stored.size(), values.size());
  std::copy_n(stored.data(), count, values.data());
  return count;
}

void TiffDecoder::undo_predictor(const Chunk& chunk, std::span<std::byte> values) {
  if (directory_.predictor == TiffPredictor::kNone) return;
  const auto bytes = static_cast<std::size_t>(row_bytes());
  const auto channels = static_cast<std::size_t>(directory_.chunk_channels());
  const std::span<std::byte> room = row_.resize(bytes);
  for (int y = chunk.first_row; y < chunk.end_row; ++y) {
    const auto row = values.subspan(static_cast<std::size_t>(y) * bytes, bytes);
    if (directory_.predictor == TiffPredictor::kDifference)
      add_differences(row, size_of(directory_.dtype), channels);
    else
      join_float_bytes(row, size_of(directory_.dtype), channels, room);
  }
}

// A chunk is a JPEG without the tables, which all chunks share. Without a marker, libjpeg would take three channels for
// YCbCr.
Result<std::span<const std::byte>> TiffDecoder::decode_jpeg(const Chunk& chunk, std::span<const std::byte> stored) {
  constexpr std::array<unsigned char, 2> kStart{0xFF, 0xD8};
  constexpr std::array<unsigned char, 16> kAdobeRgb{0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
  constexpr int kRgb = 2;
  const bool is_rgb = directory_.photometric == kRgb;
  const auto begins = [&](std::span<const std::byte> data) {
    return data.size() >= 2 && std::memcmp(data.data(), kStart.data(), 2) == 0;
  };
  if (!begins(stored)) return damaged(chunk, "is not a JPEG");
  std::span<const std::byte> tables = directory_.jpeg_tables;
  if (!tables.empty() && (!begins(tables) || tables.size() < 4))
    return damaged(chunk, "cannot be decoded: JPEGTables is damaged");
  if (!tables.empty()) tables = tables.subspan(2, tables.size() - 4);  // without the markers of start and end
  const std::size_t adobe = is_rgb ? kAdobeRgb.size() : 0;
  const std::span<std::byte> file = jpeg_file_.resize(adobe + tables.size() + stored.size());
  auto to = std::ranges::copy(stored.first(2), file.begin()).out;
  to = std::ranges::copy(std::as_bytes(std::span(kAdobeRgb)).first(adobe), to).out;
  to = std::ranges::copy(tables, to).out;
  std::ranges::copy(stored.subspan(2), to);

  auto header = jpeg_.open(file);
  if (!header) return damaged(chunk, header.error().what);
  if (header->width < chunk.end_column || header->height < chunk.end_row)
    return damaged(chunk, "is a JPEG of " + std::to_string(header->width) + " x " + std::to_string(header->height) +
                              " pixels instead of " + std::to_string(directory_.chunk_width) + " x " +
                              std::to_string(directory_.chunk_height));
  const int channels = directory_.chunk_channels(), width = std::min(header->width, directory_.chunk_width);
  FEEDLINE_CHECK_OK(jpeg_pixels_.resize(width, chunk.end_row, channels));
  auto decoded =
      jpeg_.decode({0, 0, width, chunk.end_row}, channels == 3 ? ColorMode::kRgb : ColorMode::kL, jpeg_pixels_);
  if (!decoded) return damaged(chunk, decoded.error().what);
  const auto bytes = static_cast<std::size_t>(row_bytes());
  FEEDLINE_TRY(const std::span<std::byte> values,
               values_.make_room(bytes * static_cast<std::uint64_t>(chunk.end_row), kMostChunkBytes));
  for (int y = chunk.first_row; y < chunk.end_row; ++y)
    std::memcpy(&values[static_cast<std::size_t>(y) * bytes], jpeg_pixels_.row(y),
                static_cast<std::size_t>(width) * static_cast<std::size_t>(channels));
  return values;
}

void TiffDecoder::copy_chunk(const Chunk& chunk, std::span<const std::byte> values, const Box& region,
                             memory::PixelBuffer& out) const {
  const auto element = size_of(directory_.dtype);
  const auto pixel = static_cast<std::size_t>(out.channels());
  const std::size_t stored_pixel = directory_.is_planar ? element : pixel;
  const auto count = static_cast<std::size_t>(chunk.end_column - chunk.first_column);
  const auto left = static_cast<std::size_t>(chunk.left + chunk.first_column - region.left);
  for (int y = chunk.first_row; y < chunk.end_row; ++y) {
    std::uint8_t* to = out.row(chunk.top + y - region.top) + left * pixel;
    if (directory_.is_planar) to += static_cast<std::size_t>(chunk.channel) * element;
    const std::byte* from = values.empty() ? nullptr
                                           : values.data() + static_cast<std::size_t>(y) * row_bytes() +
                                                 static_cast<std::size_t>(chunk.first_column) * stored_pixel;
    if (!directory_.is_planar) {
      if (from != nullptr)
        std::memcpy(to, from, count * pixel);
      else
        std::memset(to, 0, count * pixel);
      continue;
    }
    for (std::size_t x = 0; x < count; ++x, to += pixel) {
      if (from != nullptr)
        std::memcpy(to, from + x * element, element);
      else
        std::memset(to, 0, element);
    }
  }
}

}  // namespace feedline::decode
