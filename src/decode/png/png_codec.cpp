// SPDX-License-Identifier: Apache-2.0
// What a PNG's header and chunks describe.

#include "decode/codec.h"
#include "decode/file_bytes.h"
#include "decode/png/png_decoder.h"
#include "decode/png/png_stream.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSignature = 8;

// Reads the size from IHDR; the decoder verifies the chunk's checksum.
std::optional<Size> read_size(Bytes file) {
  constexpr std::size_t kType = kSignature + 4, kWidth = kType + 4, kHeight = kWidth + 4;
  if (!begins_with(part(file, kType), "IHDR"sv) || file.size() < kHeight + 4) return {};
  return Size{.height = static_cast<int>(number(file.subspan(kHeight, 4), true)),
              .width = static_cast<int>(number(file.subspan(kWidth, 4), true))};
}

// Returns the payload of the eXIf chunk, which may precede or follow the pixels. A chunk consists of length, name,
// payload and checksum.
Bytes find_exif(Bytes file) {
  constexpr std::size_t kAround = 12;
  for (std::size_t at = kSignature; at + kAround <= file.size();) {
    const std::size_t length = number(file.subspan(at, 4), true);
    if (begins_with(file.subspan(at + 4), "eXIf"sv)) return part(file, at + 8, length);
    at += kAround + length;
  }
  return {};
}

std::vector<std::string_view> read_traits(Bytes file) {
  const auto header = read_png_header(file);
  if (!header) return {};
  std::vector<std::string_view> traits;
  if (header->color == PngColor::kPalette) traits.push_back("palette");
  if (header->interlaced) traits.push_back("interlaced");
  if (header->depth == 16) traits.push_back("16 bits");
  return traits;
}

std::string_view pillow_mode(Bytes file) {
  const auto header = read_png_header(file);
  if (!header || header->depth != 8) return {};
  return header->color == PngColor::kRgb ? "RGB"sv : header->color == PngColor::kGray ? "L"sv : ""sv;
}

}  // namespace

constinit const ImageCodec kPngCodec{.make = [] -> std::unique_ptr<Codec> { return std::make_unique<PngDecoder>(); },
                                     .read_size = read_size,
                                     .find_exif = find_exif,
                                     .read_traits = read_traits,
                                     .pillow_mode = pillow_mode,
                                     .costs = {16.3, 0, 0.47}};

}  // namespace feedline::decode
