// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries out the steps of a drawing on pixels.

#include <vector>

#include "memory/pixels.h"
#include "transform/kernels/emitter.h"
#include "transform/kernels/pixel_ops/apply.h"
#include "transform/noise.h"
#include "transform/planar_resizer.h"
#include "transform/resizer.h"
#include "transform/steps.h"

namespace feedline::transform {

struct Workspace::Impl {
  Resizer resizer;
  PlanarResizer planar_resizer;
  memory::PixelBuffer images[2];  // what a step reads and what it writes, in turns
  PixelScratch pixel_scratch;
  NoiseScratch noise;
  memory::PixelBuffer mixed;    // the image that a mix began with
  AlignedVector<float> mixing;  // its sum
  memory::PixelBuffer blended;  // what a mix in turn came to so far
  ElasticScratch elastic_scratch;
  std::vector<int> border_map;
  std::vector<std::uint8_t> row_scratch;
};

// All steps but a resize at the end, whose rows go straight to the output; then the output.
// Requires: `decoded` has the drawing's region's size.
Result<void> run_steps(const Drawing::Steps& steps, memory::PixelView decoded, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out);

// Planes of a region of an image, of which a resize makes an image of 1 or 3 channels.
struct PlanarImage {
  const memory::Planes& planes;
  Box region;
  int channels = 3;
};
// Requires: the first step is a resize.
Result<void> run_steps(const Drawing::Steps& steps, const PlanarImage& decoded, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out);

Result<void> resize_into(const ResizeStep& step, memory::PixelView in, const Kernels& kernels, Resizer& resizer,
                         memory::PixelBuffer& out);

}  // namespace feedline::transform
