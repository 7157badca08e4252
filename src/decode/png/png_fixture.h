// SPDX-License-Identifier: Apache-2.0
#pragma once

// Generates PNGs for tests.

#include <spng.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"

namespace feedline::decode {

// Encodes rows in `format`: SPNG_FMT_PNG for this machine's byte order, or SPNG_FMT_RAW for the byte order of files.
// `set` may add other chunks.
template <typename Set>
std::vector<std::byte> made_png(spng_ihdr header, std::span<const std::uint8_t> rows, int format, Set set) {
  spng_ctx* const context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  FEEDLINE_CHECK(spng_set_ihdr(context, &header) == 0);
  set(context);
  FEEDLINE_CHECK(spng_encode_image(context, rows.data(), rows.size(), format, SPNG_ENCODE_FINALIZE) == 0);
  std::size_t size = 0;
  int error = 0;
  void* const data = spng_get_png_buffer(context, &size, &error);
  std::vector<std::byte> png(size);
  std::memcpy(png.data(), data, size);
  std::free(data);
  spng_ctx_free(context);
  return png;
}

// For 8-bit samples; `color` is SPNG_COLOR_TYPE_GRAYSCALE or SPNG_COLOR_TYPE_TRUECOLOR.
inline std::vector<std::byte> made_png(std::uint32_t width, std::uint32_t height, spng_color_type color,
                                       std::span<const std::uint8_t> pixels) {
  const auto type = static_cast<std::uint8_t>(color);
  return made_png({width, height, 8, type, 0, 0, 0}, pixels, SPNG_FMT_PNG, [](spng_ctx*) {});
}

}  // namespace feedline::decode
