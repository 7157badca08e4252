// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision's rules (transforms v1): what the random operations draw and what the size-dependent ones compute.
// Pure functions; the random ones advance `random`.

#include <array>
#include <optional>

#include "base/random.h"
#include "feedline/operation.h"

namespace feedline::transform {

// RandomResizedCrop: ten tries at an area and a log-uniform aspect ratio, then the largest central crop within ratio.
Box draw_resized_crop(Size image, Range scale, Range ratio, base::Random& random);

// RandomCrop: uniform over the positions. Requires: the crop fits the image.
Box draw_crop(Size image, Size crop, base::Random& random);

// A flip or any other coin: true with probability p.
bool draw_coin(double p, base::Random& random);

struct JitterDrawing {
  std::array<int, 4> order{0, 1, 2, 3};                         // of 0 brightness, 1 contrast, 2 saturation, 3 hue
  std::optional<double> brightness, contrast, saturation, hue;  // nullopt: left alone
};
JitterDrawing draw_jitter(const op::ColorJitter& jitter, base::Random& random);

// Resize: {h, w} as given, or the smaller edge to size.height and the other truncated, within max_size. A side can
// come out as 0 for extreme shapes with max_size.
Size resized_size(Size image, const op::Resize& resize);

// CenterCrop: first pads with zeros where the image is smaller, then crops.
struct CenterCropPlan {
  Padding padding;  // all 0 where the image is large enough
  Box box;          // of the padded image
};
CenterCropPlan plan_center_crop(Size image, Size crop);

// RandomCrop's borders: `padding`, then pad_if_needed on both sides of a direction that is too small. Two pads, in
// this order, because the border modes read the image that the first one made.
struct RandomCropPadding {
  Padding always, width_needed, height_needed;
};
RandomCropPadding plan_random_crop_padding(Size image, const op::RandomCrop& crop);

Size padded(Size image, const Padding& padding);
bool any(const Padding& padding);

}  // namespace feedline::transform
