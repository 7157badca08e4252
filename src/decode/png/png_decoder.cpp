// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_decoder.h"

#include <spng.h>

#include <algorithm>
#include <string>

namespace feedline::decode {
namespace {

// Deflate expands a byte to at most 1032 bytes; a file that would need a higher ratio is truncated.
constexpr std::uint64_t kMaxInflation = 1032;

int read_stream(spng_ctx*, void* user, void* out, std::size_t bytes) {
  auto& stream = *static_cast<PngStream*>(user);
  return stream.read({static_cast<std::byte*>(out), bytes}) ? 0 : SPNG_IO_EOF;
}

}  // namespace

Result<ImageHeader> PngDecoder::open(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  FEEDLINE_TRY(header_, read_png_header(bytes));
  return ImageHeader{static_cast<int>(header_.width), static_cast<int>(header_.height),
                     header_.depth == 16 ? Depth::k16Bits : Depth::k8Bits};
}

Result<void> PngDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(stream_.open(bytes_, header_));
  if (header_.color == PngColor::kPalette && stream_.palette().empty())
    return decode_error("damaged PNG: the palette is missing");
  if (stream_.palette().size() > 256 * 3) return decode_error("damaged PNG: the palette has more than 256 colors");
  pixels_.prepare(header_, stream_.palette(), mode);
  return decode_prepared(region, out);
}

Result<void> PngDecoder::decode_labels(memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(stream_.open(bytes_, header_));
  pixels_.prepare_labels(header_);
  return decode_prepared({0, 0, out.width(), out.height()}, out);
}

Result<void> PngDecoder::decode_samples(const Box& region, memory::PixelBuffer& out) {
  if (header_.color == PngColor::kPalette) return decode(region, ColorMode::kRgb, out);
  FEEDLINE_CHECK_OK(stream_.open(bytes_, header_));
  pixels_.prepare_samples(header_);
  return decode_prepared(region, out);
}

Result<void> PngDecoder::decode_prepared(const Box& region, memory::PixelBuffer& out) {
  const std::uint64_t row_bytes = header_.bytes_of(header_.width);
  if (row_bytes * header_.height / kMaxInflation > stream_.compressed_bytes())
    return decode_error("truncated PNG: " + std::to_string(bytes_.size()) + " bytes cannot hold " +
                        std::to_string(header_.width) + " x " + std::to_string(header_.height) + " pixels");
  used_libspng_ = way_ == Way::kLibspng || !decode_at_once(region, out);
  rows_.end();
  return used_libspng_ ? decode_by_libspng(region, out) : Result<void>();
}

int PngDecoder::rows_to_read(const Box& region) const {
  // decodes all rows of a truncated file to detect missing ones
  return stream_.complete() ? region.top + region.height : static_cast<int>(header_.height);
}

bool PngDecoder::decode_at_once(const Box& region, memory::PixelBuffer& out) {
  if (!rows_.start(stream_, header_)) return false;
  if (!header_.interlaced) {
    rows_.start_pass({});
    for (int y = 0, rows = rows_to_read(region); y < rows; ++y) {
      const std::uint8_t* const raw = rows_.next();
      if (raw == nullptr) return false;
      if (const int to = y - region.top; to >= 0 && to < region.height)
        pixels_.convert(raw, region.left, region.width, out.row(to));
    }
    return rows_.is_next_whole();
  }
  for (const PngPass& pass : kAdam7) {
    if (pass.columns(header_) == 0) continue;
    rows_.start_pass(pass);
    for (int row = 0; row < pass.rows(header_); ++row) {
      const std::uint8_t* const raw = rows_.next();
      if (raw == nullptr) return false;
      scatter(pass, pass.y + row * pass.dy, raw, region, out);
    }
  }
  return true;
}

Result<void> PngDecoder::decode_by_libspng(const Box& region, memory::PixelBuffer& out) {
  const PngMemory::Image image = memory_.begin();
  spng_ctx* const context = image.context();
  if (context == nullptr) return decode_error("no memory for a PNG decoder");
  spng_set_crc_action(context, SPNG_CRC_USE, SPNG_CRC_USE);  // PngStream has verified them
  spng_set_png_stream(context, read_stream, &stream_);
  const int status = spng_decode_image(context, nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
  if (status != 0) return failure(status, 0);
  return header_.interlaced ? decode_passes(context, region, out) : decode_rows(context, region, out);
}

Result<void> PngDecoder::decode_rows(spng_ctx* context, const Box& region, memory::PixelBuffer& out) {
  const std::span<std::byte> raw = raw_.resize(static_cast<std::size_t>(header_.bytes_of(header_.width)));
  const auto* samples = reinterpret_cast<const std::uint8_t*>(raw.data());
  for (int y = 0, rows = rows_to_read(region); y < rows; ++y) {
    const int status = spng_decode_scanline(context, raw.data(), raw.size());
    if (status != 0 && status != SPNG_EOI) return failure(status, static_cast<std::uint32_t>(y));
    if (const int to = y - region.top; to >= 0 && to < region.height)
      pixels_.convert(samples, region.left, region.width, out.row(to));
  }
  return {};
}

Result<void> PngDecoder::decode_passes(spng_ctx* context, const Box& region, memory::PixelBuffer& out) {
  const std::span<std::byte> raw = raw_.resize(static_cast<std::size_t>(header_.bytes_of(header_.width)));
  for (int status = 0; status != SPNG_EOI;) {
    spng_row_info info{};
    if (spng_get_row_info(context, &info) != 0) break;
    status = spng_decode_scanline(context, raw.data(), raw.size());
    if (status != 0 && status != SPNG_EOI) return failure(status, info.row_num);
    scatter(kAdam7[static_cast<std::size_t>(info.pass)], static_cast<int>(info.row_num),
            reinterpret_cast<const std::uint8_t*>(raw.data()), region, out);
  }
  return {};
}

void PngDecoder::scatter(const PngPass& pass, int y, const std::uint8_t* raw, const Box& region,
                         memory::PixelBuffer& out) {
  if (y < region.top || y >= region.top + region.height) return;
  const auto first_from = [&pass](int x) { return (std::max(0, x - pass.x) + pass.dx - 1) / pass.dx; };
  const int first = first_from(region.left), count = first_from(region.left + region.width) - first;
  const std::size_t channels = static_cast<std::size_t>(out.channels());
  auto* const row = reinterpret_cast<std::uint8_t*>(row_.resize(std::size_t{header_.width} * channels).data());
  pixels_.convert(raw, first, count, row);
  std::uint8_t* to =
      out.row(y - region.top) + static_cast<std::size_t>(pass.x + first * pass.dx - region.left) * channels;
  const std::size_t step = static_cast<std::size_t>(pass.dx) * channels;
  for (const std::uint8_t *from = row, *const end = row + static_cast<std::size_t>(count) * channels; from != end;
       to += step)
    for (std::size_t c = 0; c < channels; ++c) to[c] = *from++;
}

std::unexpected<Error> PngDecoder::failure(int status, std::uint32_t rows) const {
  const std::string location = std::to_string(rows) + " of " + std::to_string(header_.height) + " rows";
  const bool is_short = status == SPNG_IO_EOF || status == SPNG_EIDAT_TOO_SHORT;
  if (is_short && header_.interlaced) return decode_error("truncated PNG: an interlaced pass is incomplete");
  if (is_short) return decode_error("truncated PNG: " + location);
  return decode_error("damaged PNG after " + location + ": " + spng_strerror(status));
}

}  // namespace feedline::decode
