// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the steps of a drawing on pixels.

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
  memory::PixelBuffer images[2];  // the input and output of a step, alternating
  PixelScratch pixel_scratch;
  NoiseScratch noise;
  memory::PixelBuffer mixed;    // the image at the start of a mix
  AlignedVector<float> mixing;  // the sum of a mix
  memory::PixelBuffer blended;  // the result so far of an in-turn mix
  ElasticScratch elastic_scratch;
  std::vector<int> border_map;
  std::vector<std::uint8_t> row_scratch;
};

// Runs all steps and writes the output. The rows of a final resize are written directly to the output. Requires:
// `decoded` has the size of the drawing's region.
Result<void> run_steps(const Drawing::Steps& steps, memory::PixelView decoded, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out);

// Planes from which a resize makes an image of 1 or 3 channels.
struct PlanarImage {
  const memory::Planes& planes;
  Box region;
  int channels = 3;
};
// Like run_steps() above, for planes. Requires: the first step is a resize.
Result<void> run_steps(const Drawing::Steps& steps, const PlanarImage& decoded, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out);

Result<void> resize_into(const ResizeStep& step, memory::PixelView in, const Kernels& kernels, Resizer& resizer,
                         memory::PixelBuffer& out);

}  // namespace feedline::transform
