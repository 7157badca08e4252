// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes a JPEG with libjpeg and with Feedline's decoder, to compare the results.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "decode/jpeg/baseline/baseline_decoder.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/jpeg/jpeg_fixture.h"

namespace feedline::decode::baseline {

// The header of a file, read by libjpeg. The bytes must outlive this object.
class ReadHeader {
 public:
  explicit ReadHeader(const EncodedBytes& bytes) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
  }
  ~ReadHeader() { jpeg_destroy_decompress(&jpeg_); }
  ReadHeader(const ReadHeader&) = delete;
  ReadHeader& operator=(const ReadHeader&) = delete;

  std::optional<Frame> frame() const { return baseline_frame(jpeg_); }

 private:
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
};

inline std::vector<std::uint8_t> packed(const memory::PixelBuffer& pixels) {
  std::vector<std::uint8_t> all;
  for (int y = 0; y < pixels.height(); ++y)
    all.insert(all.end(), pixels.row(y), pixels.row(y) + pixels.width() * pixels.channels());
  return all;
}

// The pixels of a region, or the error.
struct Decoded {
  std::vector<std::uint8_t> pixels{};
  std::string error{};
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

inline Decoded decoded_by(JpegDecoder& decoder, const EncodedBytes& bytes, const Box& region, ColorMode mode) {
  memory::PixelBuffer out;
  if (const auto header = decoder.open(bytes); !header) return {.error = header.error().what};
  EXPECT_TRUE(out.resize(region.width, region.height, channels_of(mode)));
  if (const auto result = decoder.decode(region, mode, out); !result) return {.error = result.error().what};
  return {.pixels = packed(out)};
}

// Returns an empty vector if the decoder leaves the file to libjpeg.
inline std::vector<std::uint8_t> decoded_by(BaselineDecoder& decoder, const Frame& frame, const Box& region,
                                            ColorMode mode) {
  memory::PixelBuffer out;
  EXPECT_TRUE(out.resize(region.width, region.height, channels_of(mode)));
  return decoder.decode(frame, region, mode, out) ? packed(out) : std::vector<std::uint8_t>{};
}

}  // namespace feedline::decode::baseline
