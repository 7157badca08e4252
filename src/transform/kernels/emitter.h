// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes rows of 8-bit pixels to the output array: optionally mirrored, planar or interleaved, and in the output's
// element type. Immutable and thread-safe.

#include <cstdint>
#include <vector>

#include "feedline/array.h"
#include "feedline/operation.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/pointwise.h"

namespace feedline::transform {

class Emitter {
 public:
  Emitter(Pointwise pointwise, int channels, Size size, Layout layout);

  // Returns an emitter for rows of another size.
  Emitter of_size(Size size) const { return {pointwise_, channels_, size, layout_}; }
  const ArraySpec& spec() const { return spec_; }
  const Pointwise& pointwise() const { return pointwise_; }
  bool accepts(int width, int height, int channels) const {
    return width == width_ && height == height_ && channels == channels_;
  }
  // Writes row `y` of `out` from `row`, which has the width and the channels of spec(). Does not write outside that
  // row. The caller owns and reuses `scratch`.
  void emit(const std::uint8_t* row, int y, bool mirrored, const Kernels& kernels, std::vector<std::uint8_t>& scratch,
            std::byte* out) const;

 private:
  void emit_plane(const std::uint8_t* row, int channel, bool mirrored, const Kernels& kernels, std::byte* out) const;
  void emit_pixels(const std::uint8_t* row, const Kernels& kernels, std::byte* out) const;

  Pointwise pointwise_;
  int channels_;
  int width_, height_;
  Layout layout_;
  ArraySpec spec_;
};

}  // namespace feedline::transform
