// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/mp3_frames.h"

#include <algorithm>
#include <string_view>

#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

constexpr std::size_t kMp3HeaderBytes = 4;
// The bytes after damage, or before the first frame, in which a frame is searched.
constexpr std::uint64_t kMostSkipped = 1 << 20;
constexpr std::uint64_t kScanBytes = 1 << 20;

// kbit/s by index, from ISO 11172-3 and 13818-3.
constexpr std::uint16_t kRates1[3][16] = {{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0},
                                          {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0},
                                          {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0}};
constexpr std::uint16_t kRates2[2][16] = {{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0},
                                          {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}};
constexpr std::uint32_t kSampleRates[3] = {44100, 48000, 32000};

std::size_t side_bytes(const Mp3Header& header) {
  if (header.is_mpeg_1) return header.channels == 1 ? 17 : 32;
  return header.channels == 1 ? 9 : 17;
}

bool states_length(Bytes frame, const Mp3Header& header) {
  const Bytes xing = part(frame, kMp3HeaderBytes + side_bytes(header), 4);
  const Bytes vbri = part(frame, kMp3HeaderBytes + 32, 4);
  return begins_with(xing, "Xing") || begins_with(xing, "Info") || begins_with(vbri, "VBRI");
}

// Iterates over the frames of a file. Bytes are read in blocks.
class Frames {
 public:
  Frames(ByteSource& source, std::uint64_t begin) : source_(source), at_(begin) {}

  // Finds the next frame, at or after the current position; false if none was found.
  Result<bool> find() {
    for (std::uint64_t skipped = 0; skipped <= kMostSkipped; ++skipped, ++at_) {
      FEEDLINE_TRY(const Bytes head, bytes(at_, kMp3HeaderBytes));
      if (head.size() < kMp3HeaderBytes) return false;
      const auto header = parse_mp3_header(head);
      if (!header || (first_ && (header->rate != first_->rate || header->is_mpeg_1 != first_->is_mpeg_1))) continue;
      if (skipped > 0 || !first_) {  // three bytes match by chance; the next header must match too
        FEEDLINE_TRY(const Bytes next, bytes(at_ + header->frame_bytes, kMp3HeaderBytes));
        const auto following = parse_mp3_header(next);
        if (next.size() == kMp3HeaderBytes && (!following || following->rate != header->rate)) continue;
      }
      if (!first_) first_ = header;
      current_ = *header;
      return true;
    }
    return false;
  }
  void skip() { at_ += current_.frame_bytes; }
  std::uint64_t at() const { return at_; }
  const Mp3Header& current() const { return current_; }
  Result<Bytes> bytes(std::uint64_t offset, std::size_t count) {
    if (offset < block_at_ || offset + count > block_at_ + block_.size()) {
      FEEDLINE_TRY(block_, source_.bytes(offset, std::max<std::uint64_t>(count, kScanBytes)));
      block_at_ = offset;
    }
    return part(block_, offset - block_at_, count);
  }

 private:
  ByteSource& source_;
  std::uint64_t at_, block_at_ = 0;
  Bytes block_;
  std::optional<Mp3Header> first_;
  Mp3Header current_;
};

}  // namespace

std::optional<Mp3Header> parse_mp3_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kMp3HeaderBytes) return std::nullopt;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  if (byte(0) != 0xFF || (byte(1) & 0xE0U) != 0xE0U) return std::nullopt;
  const std::uint32_t version = byte(1) >> 3 & 3U, layer = byte(1) >> 1 & 3U;  // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
  const std::uint32_t bit_rate = byte(2) >> 4, sample_rate = byte(2) >> 2 & 3U, padding = byte(2) >> 1 & 1U;
  if (version == 1 || layer == 0 || bit_rate == 15 || sample_rate == 3) return std::nullopt;
  Mp3Header header;
  header.is_mpeg_1 = version == 3;
  header.is_layer_3 = layer == 1;
  header.rate = kSampleRates[sample_rate] >> (version == 3 ? 0U : version == 2 ? 1U : 2U);
  header.channels = byte(3) >> 6 == 3 ? 1 : 2;
  const std::uint32_t kbits = header.is_mpeg_1 ? kRates1[3 - layer][bit_rate] : kRates2[layer == 3 ? 0 : 1][bit_rate];
  if (layer == 3) {
    header.frame_samples = 384;
    header.frame_bytes = (12000 * kbits / header.rate + padding) * 4;
  } else {
    header.frame_samples = header.is_layer_3 && !header.is_mpeg_1 ? 576 : 1152;
    header.frame_bytes = header.frame_samples / 8 * 1000 * kbits / header.rate + padding;
  }
  if (kbits == 0) header.frame_bytes = 0;
  return header;
}

std::uint64_t id3_bytes(std::span<const std::byte> head) {
  if (head.size() < 10 || !begins_with(head, "ID3")) return 0;
  std::uint64_t size = 0;
  for (std::size_t i = 6; i < 10; ++i) size = size << 7 | (std::to_integer<std::uint64_t>(head[i]) & 0x7FU);
  const bool has_footer = (std::to_integer<unsigned>(head[5]) & 0x10U) != 0;
  return size + (has_footer ? 20 : 10);
}

Result<std::optional<std::uint64_t>> count_mp3_samples(ByteSource& source) {
  FEEDLINE_TRY(const Bytes head, source.bytes(0, 10));
  Frames frames(source, id3_bytes(head));
  FEEDLINE_TRY(bool is_found, frames.find());
  if (!is_found) return std::optional<std::uint64_t>();
  const Mp3Header first = frames.current();
  if (!first.is_layer_3 || first.frame_bytes == 0) return std::optional<std::uint64_t>();
  FEEDLINE_TRY(const Bytes frame, frames.bytes(frames.at(), first.frame_bytes));
  if (states_length(frame, first)) return std::optional<std::uint64_t>();
  std::uint64_t number = 0, end = 0;
  while (is_found) {
    if (frames.current().frame_bytes == 0) return std::optional<std::uint64_t>();
    end = frames.at() + frames.current().frame_bytes;
    if (end > source.size()) break;  // truncated: no decoder delivers it
    ++number;
    frames.skip();
    FEEDLINE_TRY(is_found, frames.find());
  }
  return std::optional(number * first.frame_samples);
}

}  // namespace feedline::decode
