// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the segments before the first scan of a JPEG without libjpeg. Stateless and thread-safe.

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
  // Returns nullopt at the first scan, at the end of the image, or if no valid segment follows.
  std::optional<JpegSegment> next();

 private:
  std::span<const std::byte> file_;
  std::size_t at_ = 2;
};

// The SOF segment (ITU-T T.81, table B.1): the low bits of its marker specify the coding.
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

// Returns whether all decoders interpret the JPEG in the same way, because it is sequential, is Huffman-coded, has 8
// bits per sample, and is unambiguously YCbCr. The JPEG must also have an end marker, which shows that it is not
// truncated.
bool is_plain_colour_jpeg(std::span<const std::byte> file);

}  // namespace feedline::decode
