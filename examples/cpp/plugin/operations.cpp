// SPDX-License-Identifier: Apache-2.0
// "example_posterize" changes pixels in place; "example_halve" makes an image of half the size from every other pixel.
#include <cstdint>
#include <cstring>

#include "parts.h"

namespace {

const feedline_argument kBits[] = {{"bits", 4}};

int check_bits(void*, const double* arguments, feedline_message* message) {
  if (arguments[0] >= 1 && arguments[0] <= 8) return FEEDLINE_OK;
  return feedline::plugin_failure(message, FEEDLINE_BAD_ARGUMENT, "bits must be from 1 to 8");
}

int posterize(void*, const double* arguments, uint64_t, const feedline_pixels*, const feedline_pixels* out,
              feedline_message*) {
  const auto mask = static_cast<std::uint8_t>(0xFF << (8 - static_cast<int>(arguments[0])));
  for (int y = 0; y < out->height; ++y)
    for (int i = 0; i < out->width * out->channels; ++i)
      out->data[static_cast<std::size_t>(y) * out->stride + i] &= mask;
  return FEEDLINE_OK;
}

int half_size(void*, const double*, int width, int height, int* out_width, int* out_height, feedline_message* message) {
  if (width < 2 || height < 2)
    return feedline::plugin_failure(message, FEEDLINE_BAD_DATA, "the image has a side of less than 2 pixels");
  *out_width = width / 2;
  *out_height = height / 2;
  return FEEDLINE_OK;
}

int halve(void*, const double*, uint64_t, const feedline_pixels* in, const feedline_pixels* out, feedline_message*) {
  const auto channels = static_cast<std::size_t>(in->channels);
  for (int y = 0; y < out->height; ++y)
    for (int x = 0; x < out->width; ++x)
      std::memcpy(out->data + y * out->stride + x * channels, in->data + 2 * y * in->stride + 2 * x * channels,
                  channels);
  return FEEDLINE_OK;
}

}  // namespace

const feedline_operation_v1 kPosterize{
    sizeof(feedline_operation_v1), "example_posterize", "1.0", nullptr, kBits, 1, 0, check_bits, nullptr, posterize};
const feedline_operation_v1 kHalve{
    sizeof(feedline_operation_v1), "example_halve", "1.0", nullptr, nullptr, 0, 0, nullptr, half_size, halve};
