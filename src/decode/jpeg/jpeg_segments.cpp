// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_segments.h"

#include <algorithm>

namespace feedline::decode {
namespace {

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

}  // namespace

// A segment: FF, marker, and a 2-byte length that includes itself.
std::optional<JpegSegment> JpegSegments::next() {
  constexpr unsigned kPrefix = 0xFF, kScan = 0xDA, kEnd = 0xD9;
  while (at_ + 4 <= file_.size() && byte_at(file_, at_) == kPrefix) {
    const unsigned marker = byte_at(file_, at_ + 1);
    if (marker == kPrefix) {  // a fill byte
      ++at_;
      continue;
    }
    if (marker == kScan || marker == kEnd) return std::nullopt;
    const std::size_t length = std::max<std::size_t>(2, byte_at(file_, at_ + 2) << 8 | byte_at(file_, at_ + 3));
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
    return JpegFrame{marker, static_cast<int>(byte_at(segment->payload, 0)),
                     static_cast<int>(byte_at(segment->payload, 5))};
  }
  return std::nullopt;
}

}  // namespace feedline::decode
