// SPDX-License-Identifier: Apache-2.0
#pragma once

// Warps labels: each output takes the nearest label, found as in torchvision v2 for masks, on a grid between -1 and 1
// in single precision. Pillow warps images differently, so neighbours at an edge may differ.

#include <vector>

#include "transform/warp.h"

namespace feedline::transform {

// A pixel; x < 0: none.
struct LabelPlace {
  int x = -1, y = -1;
};

// The source positions of all output labels, row by row.
void find_labels(const Warp& warp, Size in, ElasticScratch& scratch, std::vector<LabelPlace>& places);

}  // namespace feedline::transform
