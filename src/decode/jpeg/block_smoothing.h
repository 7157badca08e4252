// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interblock smoothing of progressive JPEGs that end before their last scans: low frequencies missing from all scans
// are estimated from the mean values of the surrounding blocks. The arithmetic matches libjpeg-turbo 3.0.1 and later
// (decompress_smooth_data), which differs from 2.1's at edges, in images two blocks wide and in components with
// vertical sampling factors above one. Implementing it here gives the same pixels with any linked version.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <jpeglib.h>

namespace feedline::decode {

// One per thread: it reuses its memory.
class BlockSmoothing {
 public:
  // Whether libjpeg-turbo would smooth this image. Requires: jpeg_start_decompress() has read every scan.
  static bool applies_to(const jpeg_decompress_struct& jpeg);

  // Allocates memory for the image, so that apply() allocates none.
  void prepare(const jpeg_decompress_struct& jpeg);
  // Changes the coefficients in place. May leave by longjmp. Requires: applies_to(jpeg), prepare(jpeg), and
  // do_block_smoothing was off when decompression started.
  void apply(jpeg_decompress_struct& jpeg);

 private:
  void smooth_component(jpeg_decompress_struct& jpeg, int component);

  std::vector<std::int16_t> means_;  // the DC coefficients of one component, row by row
};

}  // namespace feedline::decode
