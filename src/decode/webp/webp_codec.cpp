// SPDX-License-Identifier: Apache-2.0
// What a WebP's chunks describe. After "RIFF", size and "WEBP", each chunk consists of name, length, payload, and a
// zero byte if the length is odd.

#include "decode/codec.h"
#include "decode/file_bytes.h"
#include "decode/webp/webp_decoder.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kHead = 12, kChunkHead = 8;

// Reads the size from the first chunk: VP8X, VP8L (lossless) or "VP8 " (lossy).
std::optional<Size> read_size(Bytes file) {
  constexpr std::uint32_t kSide = 0x3FFF;
  if (file.size() < 30) return {};
  const Bytes chunk = file.subspan(kHead), payload = chunk.subspan(kChunkHead);
  const auto size = [](std::uint32_t width, std::uint32_t height) {
    return Size{.height = static_cast<int>(height), .width = static_cast<int>(width)};
  };
  if (begins_with(chunk, "VP8X"sv))
    return size(number(payload.subspan(4, 3), false) + 1, number(payload.subspan(7, 3), false) + 1);
  if (begins_with(chunk, "VP8L"sv)) {
    const std::uint32_t bits = number(payload.subspan(1, 4), false);
    return size((bits & kSide) + 1, (bits >> 14 & kSide) + 1);
  }
  if (begins_with(chunk, "VP8 "sv))
    return size(number(payload.subspan(6, 2), false) & kSide, number(payload.subspan(8, 2), false) & kSide);
  return {};
}

// Returns the payload of the EXIF chunk, if the flag in VP8X is set.
Bytes find_exif(Bytes file) {
  constexpr auto kHasExif = std::byte{0x08};
  if (!begins_with(part(file, kHead), "VP8X"sv) || file.size() <= kHead + kChunkHead) return {};
  if ((file[kHead + kChunkHead] & kHasExif) == std::byte{0}) return {};
  for (std::size_t at = kHead; at + kChunkHead <= file.size();) {
    const std::size_t length = number(file.subspan(at + 4, 4), false);
    if (begins_with(file.subspan(at), "EXIF"sv)) return part(file, at + kChunkHead, length);
    at += kChunkHead + length + length % 2;
  }
  return {};
}

std::vector<std::string_view> read_traits(Bytes) { return {}; }

// Lossless and extended files may have an alpha channel, which Pillow preserves.
std::string_view pillow_mode(Bytes file) { return begins_with(part(file, kHead), "VP8 "sv) ? "RGB"sv : ""sv; }

}  // namespace

constinit const ImageCodec kWebpCodec{.make = [] -> std::unique_ptr<Codec> { return std::make_unique<WebpDecoder>(); },
                                      .read_size = read_size,
                                      .find_exif = find_exif,
                                      .read_traits = read_traits,
                                      .pillow_mode = pillow_mode,
                                      .costs = {53, 0.64, 1.38}};

}  // namespace feedline::decode
