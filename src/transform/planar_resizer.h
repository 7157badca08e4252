// SPDX-License-Identifier: Apache-2.0
#pragma once

// A resize of planes: each with its own weights, folded from those of the image's pixels, and pixels made of the
// resized rows. Nothing is ever made at the image's size but the samples that there are.

#include <array>
#include <cstdint>

#include "memory/planes.h"
#include "transform/resizer.h"

namespace feedline::transform {

// A thread keeps one and reuses it. Not for several threads at once.
class PlanarResizer {
 public:
  // Prepares for the rows of step.window. Pixel 0 of the resize is the image's (left, top). `planes` must stay until
  // the last row. Requires: `planes` has the samples of every pixel that source_span() of both directions says.
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
