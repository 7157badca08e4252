// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_stream.h"

// A PNG consists of a signature and chunks:
//
//   | length (4, big endian) | type (4) | data (length) | CRC-32 of type and data (4) |
//
// IHDR's data: | width 4 | height 4 | depth 1 | color 1 | compression 1 | filter 1 | interlace 1 |

#include <libdeflate.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "decode/codec.h"

namespace feedline::decode {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkHead = 8, kChunkTail = 4;
constexpr std::size_t kIhdrData = 13;
constexpr std::size_t kColorOffset = kSignatureBytes + kChunkHead + 9;

std::uint32_t big_endian(Bytes at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(at[static_cast<std::size_t>(i)]);
  return value;
}

struct Chunk {
  Bytes whole;  // header, data, checksum; shorter if the file is truncated
  Bytes data;
  std::string_view type;
  bool cut = false;
};

// Parses the first chunk of a non-empty `rest`.
Result<Chunk> next_chunk(Bytes rest) {
  Chunk chunk;
  if (rest.size() < kChunkHead) return decode_error("truncated PNG: ends inside a chunk's header");
  chunk.type = {reinterpret_cast<const char*>(rest.data()) + 4, 4};
  if (!std::ranges::all_of(chunk.type, [](unsigned char c) { return std::isalnum(c) || c == '_'; }))
    return decode_error("damaged PNG: a chunk's type is not text");
  const std::uint64_t length = big_endian(rest);
  chunk.cut = kChunkHead + length + kChunkTail > rest.size();
  chunk.data =
      rest.subspan(kChunkHead, static_cast<std::size_t>(std::min<std::uint64_t>(length, rest.size() - kChunkHead)));
  chunk.whole =
      rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkHead + length + kChunkTail, rest.size())));
  return chunk;
}

Result<void> check_sum(const Chunk& chunk) {
  const std::uint32_t sum = libdeflate_crc32(0, chunk.whole.data() + 4, 4 + chunk.data.size());  // including its type
  if (sum == big_endian(chunk.whole.last(kChunkTail))) return {};
  return decode_error("damaged PNG: wrong checksum of chunk " + std::string(chunk.type));
}

bool is_known_layout(int color, int depth) {
  switch (color) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

}  // namespace

int PngHeader::channels() const {
  switch (color) {
    case PngColor::kGray:
    case PngColor::kPalette:
      return 1;
    case PngColor::kGrayAlpha:
      return 2;
    case PngColor::kRgb:
      return 3;
    case PngColor::kRgba:
      return 4;
  }
  return 0;
}

std::uint64_t PngHeader::bytes_of(std::uint64_t pixels) const {
  return (pixels * static_cast<std::uint64_t>(channels() * depth) + 7) / 8;
}

Result<PngHeader> read_png_header(Bytes bytes) {
  if (bytes.size() <= kSignatureBytes) return decode_error("truncated PNG: ends inside its header");
  FEEDLINE_TRY(const Chunk chunk, next_chunk(bytes.subspan(kSignatureBytes)));
  if (chunk.type != "IHDR" || big_endian(bytes.subspan(kSignatureBytes)) != kIhdrData)
    return decode_error("damaged PNG: does not start with IHDR");
  if (chunk.cut) return decode_error("truncated PNG: ends inside its header");
  FEEDLINE_CHECK_OK(check_sum(chunk));
  const auto byte = [&chunk](std::size_t i) { return std::to_integer<int>(chunk.data[i]); };
  if (!is_known_layout(byte(9), byte(8)))
    return decode_error("damaged PNG: color type " + std::to_string(byte(9)) + " with " + std::to_string(byte(8)) +
                        " bits");
  if (byte(10) != 0 || byte(11) != 0 || byte(12) > 1) return decode_error("damaged PNG: unknown coding");
  PngHeader header;
  header.width = big_endian(chunk.data);
  header.height = big_endian(chunk.data.subspan(4));
  header.depth = byte(8);
  header.color = static_cast<PngColor>(byte(9));
  header.interlaced = byte(12) == 1;
  FEEDLINE_CHECK_OK(check_size(header.width, header.height));
  return header;
}

Result<void> PngStream::open(Bytes bytes, const PngHeader& header) {
  palette_ = {};
  compressed_bytes_ = 0;
  complete_ = false;
  Bytes run;       // the first IDAT and those that directly follow it
  Bytes cut_data;  // data of an IDAT that is truncated by the end of the file
  bool after_run = false;
  for (Bytes rest = bytes.subspan(kHeadBytes); !rest.empty() && !complete_;) {
    auto chunk = next_chunk(rest);
    if (!chunk && compressed_bytes_ == 0) return std::unexpected(std::move(chunk).error());
    if (!chunk) break;  // the image data may still be complete, which decoding will show
    const bool is_data = chunk->type == "IDAT" && !after_run;
    if (is_data) {
      if (run.empty()) run = rest.first(0);
      compressed_bytes_ += chunk->data.size();
      if (chunk->cut) cut_data = chunk->data;
    } else if (run.data()) {
      after_run = true;
    }
    if (chunk->cut && !run.data()) return decode_error("truncated PNG: ends inside chunk " + std::string(chunk->type));
    if (chunk->cut) break;
    if (is_data || chunk->type == "PLTE") FEEDLINE_CHECK_OK(check_sum(*chunk));
    if (is_data) run = {run.data(), run.size() + chunk->whole.size()};
    if (chunk->type == "PLTE" && !run.data()) palette_ = chunk->data;
    complete_ = chunk->type == "IEND";
    rest = rest.subspan(chunk->whole.size());
  }
  if (!run.data())
    return decode_error(complete_ ? "damaged PNG: the image data is missing"
                                  : "truncated PNG: ends before its image data");
  compose(bytes, header, run, cut_data);
  return {};
}

void PngStream::compose(Bytes bytes, const PngHeader& header, Bytes run, Bytes cut_data) {
  std::ranges::copy(bytes.first(kHeadBytes), head_.begin());
  // we apply palettes ourselves: the row decoder sees the indices as grey values
  if (header.color == PngColor::kPalette) head_[kColorOffset] = static_cast<std::byte>(PngColor::kGray);
  const auto length = static_cast<std::uint32_t>(cut_data.size());
  for (std::size_t i = 0; i < 4; ++i) cut_head_[i] = static_cast<std::byte>(length >> (24 - 8 * i));
  std::memcpy(cut_head_.data() + 4, "IDAT", 4);
  pieces_ = {head_, run, cut_data.empty() ? Bytes{} : Bytes{cut_head_}, cut_data};
  piece_ = 0;
}

std::optional<std::span<const std::byte>> PngStream::data(memory::ByteBuffer& room) const {
  Bytes run = pieces_[1];
  if (run.empty() || !pieces_[3].empty()) return std::nullopt;
  const auto next = [&run] {
    const Bytes data = run.subspan(kChunkHead, big_endian(run));
    run = run.subspan(kChunkHead + data.size() + kChunkTail);
    return data;
  };
  if (const Bytes first = next(); run.empty()) return first;
  const auto joined = room.make_room(compressed_bytes_, compressed_bytes_);
  if (!joined) return std::nullopt;
  run = pieces_[1];
  for (auto to = joined->begin(); !run.empty();) to = std::ranges::copy(next(), to).out;
  return *joined;
}

bool PngStream::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (piece_ == pieces_.size()) return false;
    Bytes& piece = pieces_[piece_];
    const std::size_t count = std::min(piece.size(), out.size());
    std::ranges::copy(piece.first(count), out.begin());
    piece = piece.subspan(count);
    out = out.subspan(count);
    if (piece.empty()) ++piece_;
  }
  return true;
}

}  // namespace feedline::decode
