// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes planes, each with weights folded from those of the image's pixels, and converts the resized rows to pixels.
// Only the existing samples are stored at the image's size.

#include <array>
#include <cstdint>

#include "memory/planes.h"
#include "transform/resizer.h"

namespace feedline::transform {

// Each thread reuses one. Not thread-safe.
class PlanarResizer {
 public:
  // Prepares the rows of step.window. Pixel 0 of the resize is the image's (left, top). `planes` must outlive the last
  // row. Requires: `planes` has the samples of all pixels in source_span() of both directions.
  void begin(const ResizeStep& step, int left, int top, int channels, const memory::Planes& planes,
             const Kernels& kernels);
  // The next row of the window, with kReadSlack; valid until the next call.
  const std::uint8_t* next_row();

 private:
  const Kernels* kernels_ = nullptr;
  int planes_ = 0, channels_ = 0, width_ = 0;
  AxisTable columns_, rows_;  // of pixels
  std::array<Resizer, 3> resizers_;
  AlignedVector<std::uint8_t> colourless_, row_;
};

}  // namespace feedline::transform
