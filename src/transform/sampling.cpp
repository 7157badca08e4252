// SPDX-License-Identifier: Apache-2.0
#include "transform/sampling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace feedline::transform {
namespace {

constexpr int kTries = 10;  // torchvision's

// Python's round(): half to even, which is the default rounding direction of nearbyint.
double round_even(double value) { return std::nearbyint(value); }

// round(sqrt(...)) that stays an int: a huge ratio must not overflow the conversion; anything past the image's
// side is rejected anyway.
int rounded_side(double value) { return static_cast<int>(std::min(round_even(value), 2147483647.0)); }

int below(int bound, base::Random& random) { return static_cast<int>(random.below(static_cast<std::uint32_t>(bound))); }

Box central(Size image, int width, int height) {
  return {(image.width - width) / 2, (image.height - height) / 2, width, height};
}

bool applies(const Range& range, double neutral) { return range.low != neutral || range.high != neutral; }

}  // namespace

Box draw_resized_crop(Size image, Range scale, Range ratio, base::Random& random) {
  const double area = static_cast<double>(image.height) * image.width;
  const double log_low = std::log(ratio.low);
  const double log_high = std::log(ratio.high);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * random.uniform(scale.low, scale.high);
    const double aspect = std::exp(random.uniform(log_low, log_high));
    const int width = rounded_side(std::sqrt(target * aspect));
    const int height = rounded_side(std::sqrt(target / aspect));
    if (width <= 0 || width > image.width || height <= 0 || height > image.height) continue;
    const int top = below(image.height - height + 1, random);
    const int left = below(image.width - width + 1, random);
    return {left, top, width, height};
  }
  const double image_ratio = static_cast<double>(image.width) / image.height;
  if (image_ratio < ratio.low) return central(image, image.width, std::max(1, rounded_side(image.width / ratio.low)));
  if (image_ratio > ratio.high)
    return central(image, std::max(1, rounded_side(image.height * ratio.high)), image.height);
  return {0, 0, image.width, image.height};
}

Box draw_crop(Size image, Size crop, base::Random& random) {
  FEEDLINE_CHECK(crop.height <= image.height && crop.width <= image.width);
  if (crop.height == image.height && crop.width == image.width) return {0, 0, crop.width, crop.height};
  const int top = below(image.height - crop.height + 1, random);
  const int left = below(image.width - crop.width + 1, random);
  return {left, top, crop.width, crop.height};
}

bool draw_coin(double p, base::Random& random) { return random.uniform() < p; }

JitterDrawing draw_jitter(const op::ColorJitter& jitter, base::Random& random) {
  JitterDrawing drawn;
  for (std::size_t i = 3; i > 0; --i)
    std::swap(drawn.order[i], drawn.order[random.below(static_cast<std::uint32_t>(i + 1))]);
  const auto draw = [&random](const Range& range, double neutral) -> std::optional<double> {
    if (!applies(range, neutral)) return std::nullopt;
    return random.uniform(range.low, range.high);
  };
  drawn.brightness = draw(jitter.brightness, 1);
  drawn.contrast = draw(jitter.contrast, 1);
  drawn.saturation = draw(jitter.saturation, 1);
  drawn.hue = draw(jitter.hue, 0);
  return drawn;
}

Size resized_size(Size image, const op::Resize& resize) {
  if (resize.size.width != 0) return resize.size;
  const std::int64_t shorter = std::min(image.height, image.width);
  const std::int64_t longer = std::max(image.height, image.width);
  // int(a * b / c) of Python: one correctly rounded division, then truncation
  const auto scaled = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    const double quotient = static_cast<double>(a * b) / static_cast<double>(c);
    return static_cast<std::int64_t>(quotient);
  };
  std::int64_t short_side = resize.size.height;
  std::int64_t long_side = scaled(short_side, longer, shorter);
  if (resize.max_size && long_side > *resize.max_size) {
    short_side = scaled(*resize.max_size, short_side, long_side);
    long_side = *resize.max_size;
  }
  constexpr std::int64_t kMost = 2147483647;  // the caller refuses what is too large; the conversion must not wrap
  const int short_int = static_cast<int>(std::min(short_side, kMost));
  const int long_int = static_cast<int>(std::min(long_side, kMost));
  return image.width <= image.height ? Size{long_int, short_int} : Size{short_int, long_int};
}

CenterCropPlan plan_center_crop(Size image, Size crop) {
  CenterCropPlan plan;
  const int more_width = std::max(0, crop.width - image.width);
  const int more_height = std::max(0, crop.height - image.height);
  plan.padding = {more_width / 2, more_height / 2, (more_width + 1) / 2, (more_height + 1) / 2};
  const Size whole = padded(image, plan.padding);
  plan.box = {static_cast<int>(round_even((whole.width - crop.width) / 2.0)),
              static_cast<int>(round_even((whole.height - crop.height) / 2.0)), crop.width, crop.height};
  return plan;
}

RandomCropPadding plan_random_crop_padding(Size image, const op::RandomCrop& crop) {
  RandomCropPadding plan;
  plan.always = crop.padding;
  const Size whole = padded(image, crop.padding);
  if (!crop.pad_if_needed) return plan;
  const int more_width = std::max(0, crop.size.width - whole.width);
  const int more_height = std::max(0, crop.size.height - whole.height);
  plan.width_needed = {more_width, 0, more_width, 0};
  plan.height_needed = {0, more_height, 0, more_height};
  return plan;
}

Size padded(Size image, const Padding& padding) {
  return {image.height + padding.top + padding.bottom, image.width + padding.left + padding.right};
}

bool any(const Padding& padding) { return padding.left || padding.top || padding.right || padding.bottom; }

}  // namespace feedline::transform
