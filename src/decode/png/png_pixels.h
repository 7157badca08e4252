// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts raw PNG rows to RGB or grey like Pillow's convert(): alpha and transparency are dropped, 16-bit grey is
// clipped to 255, other 16-bit samples are reduced to their high byte, and out-of-range palette indices become black.

#include <array>
#include <cstdint>

#include "decode/png/png_stream.h"
#include "feedline/operation.h"

namespace feedline::decode {

class PngPixels {
 public:
  // palette: the payload of PLTE.
  void prepare(const PngHeader& header, std::span<const std::byte> palette, ColorMode mode);
  // Prepares to decode labels (see labels.h). Samples with 16 bits are then written in the machine's byte order.
  void prepare_labels(const PngHeader& header);
  // Prepares to decode the stored samples of all channels, unscaled, also those of 16 bits. Requires: an image without
  // a palette.
  void prepare_samples(const PngHeader& header);
  // Converts pixels first ... first + count - 1 of a raw row (unfiltered, big-endian, packed) to `out`.
  void convert(const std::uint8_t* row, int first, int count, std::uint8_t* out) const;

 private:
  void copy_samples(const std::uint8_t* row, int first, int count, std::uint8_t* out) const;
  template <int channels>
  void look_up(const std::uint8_t* row, int first, int count, std::uint8_t* out) const;

  PngHeader header_;
  ColorMode mode_ = ColorMode::kRgb;
  bool copies_samples_ = false;                         // of 8 or 16 bits, of all channels
  std::array<std::array<std::uint8_t, 3>, 256> rgb_{};  // values of samples of up to 8 bits; for kL only the first one
                                                        // counts
};

}  // namespace feedline::decode
