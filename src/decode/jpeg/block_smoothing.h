// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interblock smoothing of progressive JPEGs that end before their last scans: low frequencies that are missing from all
// scans are estimated from the mean values of the surrounding blocks. The arithmetic is the same as in libjpeg-turbo
// 3.0.1 and later (decompress_smooth_data). The arithmetic of version 2.1 differs at edges, in images that are two
// blocks wide, and in components with vertical sampling factors above one. This implementation produces the same pixels
// with any linked version of libjpeg-turbo.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <jpeglib.h>

namespace feedline::decode {

// Each thread should have one object, which reuses its memory.
class BlockSmoothing {
 public:
  // Returns whether libjpeg-turbo would smooth this image. Requires: jpeg_start_decompress() has read all scans.
  static bool applies_to(const jpeg_decompress_struct& jpeg);

  // Allocates memory for the image, so that apply() does not allocate.
  void prepare(const jpeg_decompress_struct& jpeg);
  // Modifies the coefficients in place. May exit by longjmp. Requires: applies_to(jpeg), prepare(jpeg) was called, and
  // do_block_smoothing was off when decompression started.
  void apply(jpeg_decompress_struct& jpeg);

 private:
  void smooth_component(jpeg_decompress_struct& jpeg, int component);

  std::vector<std::int16_t> means_;  // the DC coefficients of one component, row by row
};

}  // namespace feedline::decode
