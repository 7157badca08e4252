// SPDX-License-Identifier: Apache-2.0
#include "gate/made_images.h"

#include <cstdio>

#include <jpeglib.h>
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gate/case.h"

namespace feedline::gate {

std::vector<std::uint8_t> made_photo(int width, int height) {
  std::vector<std::uint8_t> pixels;
  pixels.reserve(std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  std::uint32_t noise = 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool inside = (x / 41 + y / 29) % 3 == 0;
      for (int c = 0; c < 3; ++c) {
        noise = noise * 1664525u + 1013904223u;
        const int grain = static_cast<int>(noise >> 28) - 8;
        const int slope = (x * (c + 2) + y * (4 - c)) / 8 % 200;
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(slope + (inside ? 50 : 0) + grain, 0, 255)));
      }
    }
  }
  return pixels;
}

Bytes made_jpeg(int width, int height, bool progressive) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<std::uint8_t> pixels = made_photo(width, height);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = pixels.data() + std::ptrdiff_t{3} * y * width;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  Bytes bytes(first, first + size);
  std::free(memory);
  return bytes;
}

Bytes made_png(int width, int height) {
  const std::vector<std::uint8_t> pixels = made_photo(width, height);
  spng_ctx* const context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{
      static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 8, SPNG_COLOR_TYPE_TRUECOLOR, 0, 0, 0};
  spng_set_ihdr(context, &header);
  const int failed = spng_encode_image(context, pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  require(failed == 0, "a PNG cannot be written");
  std::size_t size = 0;
  int error = 0;
  void* const data = spng_get_png_buffer(context, &size, &error);
  require(data != nullptr, "a PNG cannot be written");
  Bytes bytes(size);
  std::memcpy(bytes.data(), data, size);
  std::free(data);
  spng_ctx_free(context);
  return bytes;
}

}  // namespace feedline::gate
