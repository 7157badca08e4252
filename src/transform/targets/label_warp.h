// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a warp does to labels: the nearest one moves, found as torchvision v2 finds it for masks, on a grid between -1
// and 1 in single precision. Pillow, which moves images, finds it in another way: neighbours at an edge may differ.

#include <vector>

#include "transform/warp.h"

namespace feedline::transform {

// A pixel; x below 0: none.
struct LabelPlace {
  int x = -1, y = -1;
};

// Where the labels of what comes out stand in what goes in, row by row.
void find_labels(const Warp& warp, Size in, ElasticScratch& scratch, std::vector<LabelPlace>& places);

}  // namespace feedline::transform
