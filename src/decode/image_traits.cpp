// SPDX-License-Identifier: Apache-2.0
#include "decode/image_traits.h"

#include <algorithm>
#include <array>

#include "decode/jpeg/jpeg_segments.h"
#include "decode/png/png_stream.h"

namespace feedline::decode {
namespace {

using Traits = std::vector<std::string_view>;

Traits jpeg_traits(std::span<const std::byte> file) {
  const auto frame = jpeg_frame(file);
  if (!frame) return {};
  Traits traits;
  if (frame->is_progressive()) traits.push_back("progressive");
  if (frame->is_arithmetic()) traits.push_back("arithmetic coding");
  if (frame->is_lossless()) traits.push_back("lossless");
  if (frame->components == 4) traits.push_back("CMYK");
  if (frame->bits == 12) traits.push_back("12 bits");
  if (frame->bits == 16) traits.push_back("16 bits");
  return traits;
}

Traits png_traits(std::span<const std::byte> file) {
  const auto header = read_png_header(file);
  if (!header) return {};
  Traits traits;
  if (header->color == PngColor::kPalette) traits.push_back("palette");
  if (header->interlaced) traits.push_back("interlaced");
  if (header->depth == 16) traits.push_back("16 bits");
  return traits;
}

}  // namespace

namespace {

// The end marker must be within this many bytes of the end of the file; cameras append little after it.
bool has_end_marker(std::span<const std::byte> file) {
  constexpr std::size_t kWithin = 4096;
  constexpr std::array kEnd{std::byte{0xFF}, std::byte{0xD9}};
  return !std::ranges::search(file.last(std::min(file.size(), kWithin)), kEnd).empty();
}

}  // namespace

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

Traits storage_traits(ImageFormat format, std::span<const std::byte> file) {
  if (format == ImageFormat::kJpeg) return jpeg_traits(file);
  if (format == ImageFormat::kPng) return png_traits(file);
  return {};
}

}  // namespace feedline::decode
