// SPDX-License-Identifier: Apache-2.0
#pragma once

// The segments in front of a JPEG's first scan, looked at without libjpeg. Stateless and thread-safe.

#include <cstddef>
#include <optional>
#include <span>

namespace feedline::decode {

struct JpegSegment {
  unsigned marker = 0;                 // the byte behind 0xFF
  std::span<const std::byte> payload;  // behind the length; shorter where the file ends
};

// Segment after segment of a file, from behind its first marker.
class JpegSegments {
 public:
  explicit JpegSegments(std::span<const std::byte> file) : file_(file) {}
  // Nothing at the first scan, at the image's end, and where no segment is.
  std::optional<JpegSegment> next();

 private:
  std::span<const std::byte> file_;
  std::size_t at_ = 2;
};

// SOF (ITU-T T.81, table B.1): the low bits of its marker say how samples are coded.
struct JpegFrame {
  unsigned marker = 0;
  int bits = 0;
  int components = 0;

  bool is_lossless() const { return (marker & 3) == 3; }
  bool is_progressive() const { return (marker & 3) == 2; }
  bool is_hierarchical() const { return (marker & 4) != 0; }
  bool is_arithmetic() const { return (marker & 8) != 0; }
};
std::optional<JpegFrame> jpeg_frame(std::span<const std::byte> file);

}  // namespace feedline::decode
