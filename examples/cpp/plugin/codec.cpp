// SPDX-License-Identifier: Apache-2.0
// Images "*.raw8": "RAW8", width and height (uint16, little-endian), and the pixels as RGB.
#include <cstdint>
#include <cstring>

#include "parts.h"

namespace {

constexpr std::size_t kHead = 8;

int read_header(void*, feedline_bytes file, int* width, int* height, feedline_message* message) {
  std::uint16_t sides[2];
  if (file.size < kHead) return feedline::plugin_failure(message, FEEDLINE_BAD_DATA, "truncated in the header");
  std::memcpy(sides, static_cast<const char*>(file.data) + 4, sizeof sides);
  *width = sides[0];
  *height = sides[1];
  return FEEDLINE_OK;
}

int decode(void* context, feedline_bytes file, uint8_t* out, size_t stride, feedline_message* message) {
  int width = 0, height = 0;
  if (const int code = read_header(context, file, &width, &height, message); code != FEEDLINE_OK) return code;
  const std::size_t row = static_cast<std::size_t>(width) * 3;
  if (file.size - kHead < row * static_cast<std::size_t>(height))
    return feedline::plugin_failure(message, FEEDLINE_BAD_DATA, "truncated: rows are missing");
  const auto* const pixels = static_cast<const char*>(file.data) + kHead;
  for (int y = 0; y < height; ++y)
    std::memcpy(out + static_cast<std::size_t>(y) * stride, pixels + static_cast<std::size_t>(y) * row, row);
  return FEEDLINE_OK;
}

const char* const kExtensions[] = {"raw8"};

}  // namespace

const feedline_codec_v1 kCodec{
    sizeof(feedline_codec_v1), "raw8", "1.0", nullptr, kExtensions, 1, {"RAW8", 4}, read_header, decode};
