// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/iou_crop.h"

#include <algorithm>
#include <cmath>

namespace feedline::transform {
namespace {

// torchvision draws options until one fits. Its loop never ends if no option fits and none of the options means "no
// crop". After this many rounds without a crop, no crop is used; with the default options, this happens for one sample
// in 5 million.
constexpr int kMostRounds = 100;

// Draws one candidate for a crop; its sides may be invalid.
Box draw_box(const op::RandomIouCrop& o, Size image, base::Random& random) {
  Box box;
  box.width = static_cast<int>(image.width * random.uniform(o.min_scale, o.max_scale));
  box.height = static_cast<int>(image.height * random.uniform(o.min_scale, o.max_scale));
  if (box.width == 0 || box.height == 0) return {};
  const double ratio = static_cast<double>(box.width) / box.height;
  if (!(o.min_aspect_ratio <= ratio && ratio <= o.max_aspect_ratio)) return {};
  box.left = static_cast<int>((image.width - box.width) * random.uniform());
  box.top = static_cast<int>((image.height - box.height) * random.uniform());
  return box;
}

// Like torch, computes half of the sum in single precision, even for integers.
template <typename Number>
float middle(Number low, Number high) {
  return 0.5f * static_cast<float>(low + high);
}

template <typename Number>
bool is_centre_inside(const Corners<Number>& box, const Box& crop) {
  const float x = middle(box[0], box[2]), y = middle(box[1], box[3]);
  return static_cast<float>(crop.left) < x && x < static_cast<float>(crop.left + crop.width) &&
         static_cast<float>(crop.top) < y && y < static_cast<float>(crop.top + crop.height);
}

// torchvision's box_iou.
template <typename Number>
float overlap(const Corners<Number>& box, const Box& crop) {
  const Corners<Number> other{static_cast<Number>(crop.left), static_cast<Number>(crop.top),
                              static_cast<Number>(crop.left + crop.width), static_cast<Number>(crop.top + crop.height)};
  const auto area = [](const Corners<Number>& of) { return (of[2] - of[0]) * (of[3] - of[1]); };
  const Number width = std::min(box[2], other[2]) - std::max(box[0], other[0]);
  const Number height = std::min(box[3], other[3]) - std::max(box[1], other[1]);
  const Number inter = std::max(width, Number{0}) * std::max(height, Number{0});
  return static_cast<float>(inter) / static_cast<float>(area(box) + area(other) - inter);
}

// Returns whether the centre of a box is inside the crop and one of these boxes overlaps it enough.
template <typename Number>
bool fits(std::span<const Corners<Number>> boxes, const Box& crop, double least, std::vector<std::uint8_t>& inside) {
  bool any = false, enough = false;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    inside[i] = is_centre_inside(boxes[i], crop);
    if (!inside[i]) continue;
    any = true;
    enough = enough || !(overlap(boxes[i], crop) < static_cast<float>(least));  // true for NaN, as in torch
  }
  return any && enough;
}

}  // namespace

template <typename Number>
std::optional<Box> draw_iou_crop(const op::RandomIouCrop& o, Size image, std::span<const Corners<Number>> boxes,
                                 base::Random& random, std::vector<std::uint8_t>& inside) {
  if (boxes.empty()) return std::nullopt;
  inside.assign(boxes.size(), 0);
  for (int round = 0; round < kMostRounds; ++round) {
    const double least = o.sampler_options[random.below(static_cast<std::uint32_t>(o.sampler_options.size()))];
    if (least >= 1) return std::nullopt;
    for (int trial = 0; trial < o.trials; ++trial) {
      const Box box = draw_box(o, image, random);
      if (box.width != 0 && fits(boxes, box, least, inside)) return box;
    }
  }
  return std::nullopt;
}

template std::optional<Box> draw_iou_crop<float>(const op::RandomIouCrop&, Size, std::span<const Corners<float>>,
                                                 base::Random&, std::vector<std::uint8_t>&);
template std::optional<Box> draw_iou_crop<std::int64_t>(const op::RandomIouCrop&, Size,
                                                        std::span<const Corners<std::int64_t>>, base::Random&,
                                                        std::vector<std::uint8_t>&);

}  // namespace feedline::transform
