// SPDX-License-Identifier: Apache-2.0
// What the segments before a JPEG's first scan describe.

#include "decode/codec.h"
#include "decode/file_bytes.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/jpeg/jpeg_segments.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

std::optional<Size> read_size(Bytes file) {
  const auto frame = jpeg_frame(file);
  if (!frame) return {};
  return Size{.height = frame->height, .width = frame->width};
}

// Returns the payload of segment APP1 (FF E1), after "Exif\0\0".
Bytes find_exif(Bytes file) {
  constexpr unsigned kApp1 = 0xE1;
  JpegSegments segments(file);
  while (const auto segment = segments.next())
    if (segment->marker == kApp1 && begins_with(segment->payload, "Exif\0\0"sv)) return segment->payload;
  return {};
}

std::vector<std::string_view> read_traits(Bytes file) {
  const auto frame = jpeg_frame(file);
  if (!frame) return {};
  std::vector<std::string_view> traits;
  if (frame->is_progressive()) traits.push_back("progressive");
  if (frame->is_arithmetic()) traits.push_back("arithmetic coding");
  if (frame->is_lossless()) traits.push_back("lossless");
  if (frame->components == 4) traits.push_back("CMYK");
  if (frame->bits == 12) traits.push_back("12 bits");
  if (frame->bits == 16) traits.push_back("16 bits");
  return traits;
}

std::string_view pillow_mode(Bytes file) {
  const auto frame = jpeg_frame(file);
  if (!frame || frame->bits != 8 || frame->is_lossless() || frame->is_hierarchical() || frame->is_arithmetic())
    return {};
  return frame->components == 3 ? "RGB"sv : frame->components == 1 ? "L"sv : ""sv;
}

}  // namespace

constinit const ImageCodec kJpegCodec{.make = [] -> std::unique_ptr<Codec> { return std::make_unique<JpegDecoder>(); },
                                      .read_size = read_size,
                                      .find_exif = find_exif,
                                      .read_traits = read_traits,
                                      .pillow_mode = pillow_mode,
                                      .costs = {2.2, 0.06, 1.22}};

}  // namespace feedline::decode
