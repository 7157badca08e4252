// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_segments.h"

#include <algorithm>
#include <array>

namespace feedline::decode {
namespace {

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

unsigned word_at(std::span<const std::byte> bytes, std::size_t at) {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

// The end marker must be within this many bytes of the end of the file; cameras append only a few bytes.
bool has_end_marker(std::span<const std::byte> file) {
  constexpr std::size_t kWithin = 4096;
  constexpr std::array kEnd{std::byte{0xFF}, std::byte{0xD9}};
  return !std::ranges::search(file.last(std::min(file.size(), kWithin)), kEnd).empty();
}

}  // namespace

// A segment starts with FF, the marker, and a 2-byte length that counts its own bytes.
std::optional<JpegSegment> JpegSegments::next() {
  constexpr unsigned kPrefix = 0xFF, kScan = 0xDA, kEnd = 0xD9;
  constexpr unsigned kTemporary = 0x01, kFirstRestart = 0xD0, kLastRestart = 0xD7;
  while (at_ + 4 <= file_.size() && byte_at(file_, at_) == kPrefix) {
    const unsigned marker = byte_at(file_, at_ + 1);
    if (marker == kPrefix) {  // a fill byte
      ++at_;
      continue;
    }
    if (marker == kTemporary || (marker >= kFirstRestart && marker <= kLastRestart)) {  // have no length
      at_ += 2;
      continue;
    }
    const std::size_t length = word_at(file_, at_ + 2);
    if (marker == kScan || marker == kEnd || length < 2) return std::nullopt;
    const auto rest = file_.subspan(at_ + 4);
    at_ += 2 + length;
    return JpegSegment{marker, rest.first(std::min(rest.size(), length - 2))};
  }
  return std::nullopt;
}

std::optional<JpegFrame> jpeg_frame(std::span<const std::byte> file) {
  constexpr unsigned kTables = 0xC4, kReserved = 0xC8, kArithmetic = 0xCC;  // among the markers of frames
  JpegSegments segments(file);
  while (const auto segment = segments.next()) {
    const unsigned marker = segment->marker;
    if ((marker & 0xF0) != 0xC0 || marker == kTables || marker == kReserved || marker == kArithmetic) continue;
    if (segment->payload.size() < 6) return std::nullopt;
    const auto payload = segment->payload;  // precision 1, height 2, width 2, components 1
    return JpegFrame{marker, static_cast<int>(byte_at(payload, 0)), static_cast<int>(word_at(payload, 1)),
                     static_cast<int>(word_at(payload, 3)), static_cast<int>(byte_at(payload, 5))};
  }
  return std::nullopt;
}

bool is_plain_colour_jpeg(std::span<const std::byte> file) {
  constexpr unsigned kBaseline = 0xC0, kExtended = 0xC1, kAdobe = 0xEE;
  const auto frame = jpeg_frame(file);
  if (!has_end_marker(file) || !frame || (frame->marker != kBaseline && frame->marker != kExtended) ||
      frame->bits != 8 || frame->components != 3)
    return false;
  JpegSegments segments(file);
  while (const auto segment = segments.next()) {
    const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(segment->payload[i]); };
    // "Adobe", two numbers, two words of flags, and the transform: 1 is YCbCr
    if (segment->marker == kAdobe && segment->payload.size() >= 12 && at(0) == 'A' && at(11) != 1) return false;
    if (segment->marker != frame->marker) continue;
    // precision, height, width, components, and for each its number, sampling and table
    return segment->payload.size() >= 15 && at(6) == 1 && at(9) == 2 && at(12) == 3;
  }
  return false;
}

}  // namespace feedline::decode
