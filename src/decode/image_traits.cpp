// SPDX-License-Identifier: Apache-2.0
#include "decode/image_traits.h"

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

Traits storage_traits(ImageFormat format, std::span<const std::byte> file) {
  if (format == ImageFormat::kJpeg) return jpeg_traits(file);
  if (format == ImageFormat::kPng) return png_traits(file);
  return {};
}

}  // namespace feedline::decode
