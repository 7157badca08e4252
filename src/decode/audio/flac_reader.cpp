// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "decode/audio/edited_bytes.h"
#include "decode/audio/mp3_frames.h"
#include "decode/audio/sndfile_library.h"
#include "decode/audio/sndfile_reader.h"
#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

constexpr std::size_t kInfoBytes = 34;
// Bits 4 to 39 of these bytes of STREAMINFO are the number of samples.
constexpr std::size_t kTotalAt = 13, kTotalBytes = 5;
constexpr std::size_t kMostHeaderBytes = 16;  // of a FLAC frame
constexpr std::uint64_t kWindowBytes = 16 << 10;
constexpr int kMostSteps = 12, kMostBlocks = 4096;
// A found frame that ends at most this many before the wanted one is good enough.
constexpr std::uint64_t kNearFrames = 1;

std::unexpected<Error> damaged(const std::string& what) { return data_error("FLAC: " + what, "decode"); }

std::uint8_t crc8(Bytes bytes) {
  unsigned crc = 0;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<unsigned>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1U) ^ ((crc & 0x80U) != 0 ? 0x107U : 0U);
  }
  return static_cast<std::uint8_t>(crc);
}

// The header of a FLAC frame:
//
//   0xFF | 0xF8, or 0xF9 if blocks differ in size | sizes of block (4 bits), rate (4) | channels (4), bits (3), 0
//   | number of the frame or sample, coded as in UTF-8 | size of the block, rate, if not stated before | CRC-8
struct FrameHeader {
  std::uint64_t number = 0;
  unsigned sizes = 0, bits = 0;  // bytes that are equal in all frames of a file but the last
};

std::optional<FrameHeader> parse_frame(Bytes bytes) {
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  if (bytes.size() < kMostHeaderBytes || byte(0) != 0xFF || (byte(1) & 0xFEU) != 0xF8) return std::nullopt;
  FrameHeader header{.sizes = byte(1) << 8U | byte(2), .bits = byte(3) & 0x0FU};
  const unsigned block = byte(2) >> 4U, rate = byte(2) & 15U;
  if (block == 0 || rate == 15 || byte(3) >> 4U > 10 || (byte(3) & 1U) != 0) return std::nullopt;
  const unsigned first = byte(4);
  std::size_t length = 1;
  if (first < 0x80) {
    header.number = first;
  } else {
    while (length < 7 && (first & (0x80U >> length)) != 0) ++length;
    if (length == 1) return std::nullopt;
    header.number = length < 7 ? first & (0x7FU >> length) : 0;
    for (std::size_t i = 1; i < length; ++i) {
      if ((byte(4 + i) & 0xC0U) != 0x80) return std::nullopt;
      header.number = header.number << 6U | (byte(4 + i) & 0x3FU);
    }
  }
  std::size_t end = 4 + length;
  end += block == 6 ? 1 : block == 7 ? 2 : 0;
  end += rate == 12 ? 1 : rate == 13 || rate == 14 ? 2 : 0;
  if (end >= bytes.size() || crc8(bytes.first(end)) != byte(end)) return std::nullopt;
  return header;
}

}  // namespace

Result<FlacStream> read_flac_header(ByteSource& source) {
  FEEDLINE_TRY(const Bytes head, source.bytes(0, 10));
  std::uint64_t at = id3_bytes(head);
  FEEDLINE_TRY(const Bytes magic, source.bytes(at, 4));
  if (!begins_with(magic, "fLaC")) return damaged("the ID3 tag is not followed by fLaC");
  FlacStream stream;
  at += 4;
  for (int block = 0; block < kMostBlocks; ++block) {
    FEEDLINE_TRY(const Bytes bytes, source.bytes(at, 4 + kInfoBytes));
    if (bytes.size() < 4) return damaged("truncated in the metadata");
    const unsigned kind = std::to_integer<unsigned>(bytes[0]);
    const std::uint32_t size = number(bytes.subspan(1, 3), true);
    if (block == 0) {
      if ((kind & 0x7FU) != 0 || size != kInfoBytes || bytes.size() < 4 + kInfoBytes)
        return damaged("the metadata does not begin with STREAMINFO");
      const Bytes info = bytes.subspan(4);
      stream.stream_info.assign(info.begin(), info.end());
      const std::uint32_t least = number(info.first(2), true), most = number(info.subspan(2, 2), true);
      stream.block_frames = least == most ? most : 0;
      stream.most_frame_bytes = number(info.subspan(7, 3), true);
      stream.rate = number(info.subspan(10, 3), true) >> 4U;
      stream.channels = (std::to_integer<unsigned>(info[12]) >> 1U & 7U) + 1;
      stream.frames =
          (std::uint64_t{std::to_integer<unsigned>(info[13]) & 15U} << 32U) | number(info.subspan(14, 4), true);
      if (stream.rate == 0) return damaged("a rate of 0 Hz is not possible");
    }
    at += 4 + size;
    if ((kind & 0x80U) == 0) continue;
    if (at >= source.size()) return damaged("truncated in the metadata");
    stream.data_at = at;
    return stream;
  }
  return damaged("more than " + std::to_string(kMostBlocks) + " blocks of metadata");
}

Result<FlacPosition> find_flac_frame(ByteSource& source, const FlacStream& stream, std::uint64_t frame) {
  const FlacPosition start{stream.data_at, 0};
  FEEDLINE_TRY(const Bytes bytes, source.bytes(stream.data_at, kMostHeaderBytes));
  const auto first = parse_frame(bytes);
  const bool is_fixed = first && (first->sizes >> 8U & 1U) == 0;
  if (!first || (is_fixed && stream.block_frames == 0)) return start;
  const std::uint64_t near = kNearFrames * std::max(stream.block_frames, 4096U);
  const std::uint64_t window = std::max<std::uint64_t>(kWindowBytes, stream.most_frame_bytes + kMostHeaderBytes);
  FlacPosition low = start, high{source.size(), stream.frames};
  for (int step = 0; step < kMostSteps && frame - low.frame > near && high.at - low.at > kMostHeaderBytes; ++step) {
    // before the place that the sizes suggest, so that the window has the wanted frame and the next one
    const std::uint64_t target = frame - near;
    const double share = static_cast<double>(target - std::min(target, low.frame)) /
                         static_cast<double>(std::max<std::uint64_t>(high.frame - low.frame, 1));
    // after some steps halve, because sizes of frames may differ much
    const double used = step < kMostSteps / 2 ? share : 0.5;
    const std::uint64_t guess =
        low.at + 1 + static_cast<std::uint64_t>(used * static_cast<double>(high.at - low.at - 1));
    FEEDLINE_TRY(const Bytes seen, source.bytes(guess, std::min(window, high.at - guess)));
    bool is_found = false;
    for (std::size_t i = 0; i + kMostHeaderBytes <= seen.size(); ++i) {
      if (seen[i] != std::byte{0xFF}) continue;
      const auto header = parse_frame(seen.subspan(i));
      if (!header || header->sizes != first->sizes || header->bits != first->bits) continue;
      const std::uint64_t sample = is_fixed ? header->number * stream.block_frames : header->number;
      if (sample <= low.frame || sample >= high.frame) continue;
      is_found = true;
      if (sample > frame) {
        high = {guess + i, sample};
        break;
      }
      low = {guess + i, sample};
    }
    if (!is_found) high.at = guess;
  }
  return low;
}

FlacReader::FlacReader(ByteSource& source, FlacStream stream) : source_(source), stream_(std::move(stream)) {
  info_ = {"FLAC", stream_.rate, stream_.channels, stream_.frames, SampleKind::kInteger};
}

Result<std::unique_ptr<AudioReader>> FlacReader::open(ByteSource& source) {
  if (const auto library = sndfile_library(); !library) return std::unexpected(library.error());
  FEEDLINE_TRY(FlacStream stream, read_flac_header(source));
  if (stream.frames == 0) return SndfileReader::open(source, "FLAC");  // counts them
  return std::unique_ptr<AudioReader>(new FlacReader(source, std::move(stream)));
}

Result<void> FlacReader::start_at(const FlacPosition& position) {
  decoder_.reset();
  std::vector<std::byte> header{std::byte{'f'},  std::byte{'L'}, std::byte{'a'}, std::byte{'C'},
                                std::byte{0x80}, std::byte{0},   std::byte{0},   std::byte{kInfoBytes}};
  const std::size_t info_at = header.size();
  header.insert(header.end(), stream_.stream_info.begin(), stream_.stream_info.end());
  const std::uint64_t rest = stream_.frames - position.frame;
  std::byte* const total = header.data() + info_at + kTotalAt;
  total[0] = (total[0] & std::byte{0xF0}) | static_cast<std::byte>(rest >> 32U & 15U);
  for (std::size_t i = 1; i < kTotalBytes; ++i) total[i] = static_cast<std::byte>(rest >> (32 - 8 * i));
  part_ = std::make_unique<EditedBytes>(source_, 0, position.at, std::move(header));
  FEEDLINE_TRY(decoder_, SndfileReader::open(*part_, "FLAC"));
  position_ = position;
  next_ = position.frame;
  return {};
}

template <typename T>
Result<void> FlacReader::read_as(std::uint64_t begin, std::span<T> out) {
  if (!decoder_ || begin != next_) {
    FEEDLINE_TRY(const FlacPosition position, find_flac_frame(source_, stream_, begin));
    FEEDLINE_CHECK_OK(start_at(position));
  }
  auto got = decoder_->read(begin - position_.frame, out);
  if (!got && position_.frame > 0) {  // the position may be wrong; and an error states positions in the whole file
    FEEDLINE_CHECK_OK(start_at({stream_.data_at, 0}));
    got = decoder_->read(begin, out);
  }
  next_ = begin + out.size() / stream_.channels;
  return got;
}

}  // namespace feedline::decode
