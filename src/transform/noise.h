// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes rectangles over pixels, or over a finished row of the batch, in the units that result from operations on
// values. Each row of a rectangle reads noise from a fixed position in the sample's stream, so the noise does not
// depend on the layout or the element type.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/kernels.h"
#include "transform/steps.h"

namespace feedline::transform {

// The scratch memory of one thread: a row of a rectangle.
struct NoiseScratch {
  AlignedVector<float> values;
  AlignedVector<std::uint16_t> halves;
};

// Fills the box with normal numbers that are truncated and wrapped to bytes, as torch converts them. Requires:
// `erasure` has noise, and its box is inside the image.
void erase_pixels(const Erasure& erasure, const Kernels& kernels, NoiseScratch& scratch, memory::PixelBuffer& image);

// Writes rectangles over finished rows. Immutable and thread-safe.
class OutputEraser {
 public:
  // operations: the whole chain; drawings number the operations from `first` on.
  OutputEraser(std::span<const Operation> operations, std::size_t first, Layout layout);

  // Requires: `out` is a float image with 1 or 3 channels in this layout, and the box is inside it.
  void erase(const Erasure& erasure, const Kernels& kernels, NoiseScratch& scratch, ArrayView out) const;

 private:
  // The effect of an operation on values that were written before it. halves: each step is rounded to float16.
  struct ValueStep {
    std::array<float, 3> mean{}, std{1, 1, 1};
    bool halves = false;
    bool is_rounding = false;               // only rounds
    std::optional<op::Window> window = {};  // instead of mean and std
  };
  static const ValueStep kRounding;
  class Appender;
  void convert(std::size_t channel, std::span<const ValueStep> steps, std::span<float> values) const;

  Layout layout_;
  std::vector<std::vector<ValueStep>> steps_;  // after each operation
};

}  // namespace feedline::transform
