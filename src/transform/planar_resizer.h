// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes planes with weights that are derived from the weights of the image's pixels, and converts the resized rows to
// pixels. No plane is enlarged to the size of the image.

#include <array>
#include <cstdint>

#include "memory/planes.h"
#include "transform/resizer.h"

namespace feedline::transform {

// Each thread reuses one object. Not thread-safe.
class PlanarResizer {
 public:
  // Prepares to return the rows of step.window. Pixel 0 of the resize is at (left, top) of the image. `planes` must
  // stay valid until the last row. Requires: `planes` has the samples of all pixels in source_span() of both
  // directions.
  void begin(const ResizeStep& step, int left, int top, int channels, const memory::Planes& planes,
             const Kernels& kernels);
  // Returns the next row of the window, with kReadSlack; valid until the next call.
  const std::uint8_t* next_row();

 private:
  const Kernels* kernels_ = nullptr;
  int planes_ = 0, channels_ = 0, width_ = 0;
  AxisTable columns_, rows_;  // of pixels
  std::array<Resizer, 3> resizers_;
  AlignedVector<std::uint8_t> colourless_, row_;
};

}  // namespace feedline::transform
