// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the segments before a JPEG's first scan without libjpeg. Stateless and thread-safe.

#include <cstddef>
#include <optional>
#include <span>

namespace feedline::decode {

struct JpegSegment {
  unsigned marker = 0;                 // the byte after 0xFF
  std::span<const std::byte> payload;  // after the length; shorter if the file is truncated
};

// Iterates over the segments of a file, starting after its first marker.
class JpegSegments {
 public:
  explicit JpegSegments(std::span<const std::byte> file) : file_(file) {}
  // Empty at the first scan, at the end of the image, or if no valid segment follows.
  std::optional<JpegSegment> next();

 private:
  std::span<const std::byte> file_;
  std::size_t at_ = 2;
};

// SOF (ITU-T T.81, table B.1): the low bits of the marker specify the coding.
struct JpegFrame {
  unsigned marker = 0;
  int bits = 0;
  int height = 0;
  int width = 0;
  int components = 0;

  bool is_lossless() const { return (marker & 3) == 3; }
  bool is_progressive() const { return (marker & 3) == 2; }
  bool is_hierarchical() const { return (marker & 4) != 0; }
  bool is_arithmetic() const { return (marker & 8) != 0; }
};
std::optional<JpegFrame> jpeg_frame(std::span<const std::byte> file);

// A JPEG that all decoders interpret alike: sequential, Huffman-coded, 8 bits, and unambiguously YCbCr. It has an end
// marker, so it is not truncated.
bool is_plain_colour_jpeg(std::span<const std::byte> file);

}  // namespace feedline::decode
