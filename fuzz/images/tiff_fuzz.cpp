// SPDX-License-Identifier: Apache-2.0

// Any bytes as a TIFF: pages are read, or refused with an error; a region has the values that the whole image has
// there; no byte is written outside the pixels.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "decode/tiff/tiff_decoder.h"
#include "decoded_regions.h"

namespace {

using feedline::Box;
using feedline::decode::Decoded;
using feedline::decode::TiffDecoder;

void decode(TiffDecoder& decoder, const Box& box, int pixel_bytes, Decoded& out) {
  out.make_room(box, pixel_bytes);
  const auto result = decoder.decode(box, out.pixels);
  out.error = result ? "" : result.error().what;
}

// Compares a region with the same part of the whole image.
void check_region(const Decoded& whole, const Decoded& part, const Box& box) {
  const auto pixel = static_cast<std::size_t>(part.pixels.channels());
  const std::size_t row_bytes = static_cast<std::size_t>(box.width) * pixel;
  for (int y = 0; y < box.height; ++y) {
    const std::uint8_t* const row = part.pixels.row(y);
    const std::uint8_t* const wanted = whole.pixels.row(box.top + y) + static_cast<std::size_t>(box.left) * pixel;
    if (part.error.empty() && std::memcmp(row, wanted, row_bytes) != 0)
      feedline::decode::fail("the values differ from those of the whole image", box);
    for (std::size_t i = row_bytes; i < part.pixels.stride(); ++i)
      if (row[i] != feedline::decode::kUntouched) feedline::decode::fail("bytes were written after the pixels", box);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static TiffDecoder decoder;  // reused for all inputs, as in a thread of the engine
  static Decoded whole, part;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const int page : {0, 1}) {
    const auto directory = feedline::decode::read_tiff_directory(bytes, page);
    const auto header = decoder.open(bytes, page);
    FEEDLINE_CHECK(directory.has_value() == header.has_value());
    if (!header) continue;
    const int pixel_bytes = header->channels * static_cast<int>(feedline::size_of(header->dtype));
    constexpr std::int64_t kMost = feedline::decode::kMostFuzzedPixels;
    if (std::int64_t{header->width} * header->height > kMost / pixel_bytes ||
        std::int64_t{directory->chunk_width} * directory->chunk_height > kMost)
      continue;
    decode(decoder, {0, 0, header->width, header->height}, pixel_bytes, whole);
    feedline::decode::DrawnBoxes boxes(bytes);
    for (int i = 0; i < 3; ++i) {
      const Box box = boxes.next(header->width, header->height);
      decode(decoder, box, pixel_bytes, part);
      if (whole.error.empty()) FEEDLINE_CHECK(part.error.empty());
      if (whole.error.empty()) check_region(whole, part, box);
    }
  }
  return 0;
}
