// SPDX-License-Identifier: Apache-2.0
#pragma once

// Warps labels: each output pixel receives the nearest label. As in torchvision v2 for masks, positions are computed on
// a grid from -1 to 1 in single precision. Pillow warps images differently, so labels at edges may differ from the
// image.

#include <vector>

#include "transform/warp.h"

namespace feedline::transform {

// A pixel, or none if x < 0.
struct LabelPoint {
  int x = -1, y = -1;
};

// Computes the source positions of all output labels, row by row.
void find_labels(const Warp& warp, Size in, ElasticScratch& scratch, std::vector<LabelPoint>& points);

}  // namespace feedline::transform
