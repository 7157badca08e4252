// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rectangles that are written over: in pixels, and in a finished row of the batch, in the units that stand behind
// operations on values. Noise has its own place in a sample's stream for each row of a rectangle, so that neither
// layout nor element type changes it.

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

// Scratch of one thread: a row of a rectangle.
struct NoiseScratch {
  AlignedVector<float> values;
  AlignedVector<std::uint16_t> halves;
};

// Normal numbers without their fractions, wrapped to bytes: what torch makes of them. Requires: `erasure` has noise,
// and its box lies inside the image.
void erase_pixels(const Erasure& erasure, const Kernels& kernels, NoiseScratch& scratch, memory::PixelBuffer& image);

// Writes over rectangles of finished rows. Immutable and thread-safe.
class OutputEraser {
 public:
  // `operations`: of the whole chain, of which drawings count those from `first` on.
  OutputEraser(std::span<const Operation> operations, std::size_t first, Layout layout);

  // Requires: `out` has an image of 1 or 3 channels in this layout, of floats, and the box lies inside.
  void erase(const Erasure& erasure, const Kernels& kernels, NoiseScratch& scratch, ArrayView out) const;

 private:
  // What an operation on values does to one that was written before it. `halves`: each step is rounded to float16.
  struct ValueStep {
    std::array<float, 3> mean{}, std{1, 1, 1};
    bool halves = false;
    bool is_rounding = false;  // and nothing else
  };
  static const ValueStep kRounding;
  class Appender;
  void convert(std::size_t channel, std::span<const ValueStep> steps, std::span<float> values) const;

  Layout layout_;
  std::vector<std::vector<ValueStep>> steps_;  // after each operation
};

}  // namespace feedline::transform
