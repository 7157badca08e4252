// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the steps of a drawing on stored values.

#include <vector>

#include "feedline/error.h"
#include "memory/deep_pixels.h"
#include "memory/pixels.h"
#include "transform/deep/deep_output.h"
#include "transform/deep/deep_resizer.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/steps.h"

namespace feedline::transform {

// One thread's scratch.
struct DeepWorkspace {
  memory::PixelBuffer images[2];  // the input and output of a step, alternating
  DeepResizer resizer;
  DeepRow row;
  std::vector<int> border_map;
  AlignedVector<double> xs, ys;
  std::vector<std::byte> fill;  // a pixel
};

// Runs all steps and writes the output, of the size that the drawing has. Requires: `decoded` has the size of the
// drawing's region, and the steps are those of operations that only move pixels.
Result<void> run_deep_steps(const Drawing::Steps& steps, const memory::DeepView& decoded, const DeepOutput& output,
                            DeepWorkspace& workspace, ArrayView out);

}  // namespace feedline::transform
