// SPDX-License-Identifier: Apache-2.0

// Any bytes as an image: open() and decoding a bounded region return an error or pixels. The bytes are also tried with
// a JPEG signature, as most of the parsing is for JPEG.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "decode/decoder.h"

namespace {

constexpr std::int64_t kMaxPixels = 1 << 20;  // larger images only take more time
constexpr int kMaxSide = 64;

void decode(std::span<const std::byte> bytes) {
  // reused for all inputs, as in a thread of the engine
  static feedline::decode::ImageDecoder decoder;
  static feedline::memory::PixelBuffer out;
  const auto header = decoder.open(bytes, bytes.size() % 4 == 3);
  if (!header) {
    if (header.error().what.empty()) std::abort();
    return;
  }
  if (header->width <= 0 || header->height <= 0) std::abort();
  if (std::int64_t{header->width} * header->height > kMaxPixels) return;
  const int width = std::min(header->width, kMaxSide), height = std::min(header->height, kMaxSide);
  const feedline::Box region{(header->width - width) / 2, (header->height - height) / 2, width, height};
  const auto mode = bytes.size() % 2 == 0 ? feedline::ColorMode::kRgb : feedline::ColorMode::kL;
  const auto decoded = decoder.decode(region, mode, out);
  if (!decoded && decoded.error().what.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  decode(bytes);
  std::vector<std::byte> jpeg{std::byte{0xFF}, std::byte{0xD8}};
  jpeg.insert(jpeg.end(), bytes.begin(), bytes.end());
  decode(jpeg);
  return 0;
}
