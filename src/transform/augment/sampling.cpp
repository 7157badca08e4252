// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace feedline::transform {
namespace {

constexpr int kTries = 10;  // torchvision's

// Python's round(), which rounds half to even, like nearbyint in its default mode.
double round_even(double value) { return std::nearbyint(value); }

// Computes round(sqrt(...)) as an int. A huge ratio must not overflow the conversion; values above the image's side are
// rejected later.
int rounded_side(double value) { return static_cast<int>(std::min(round_even(value), 2147483647.0)); }

int below(int bound, base::Random& random) { return static_cast<int>(random.below(static_cast<std::uint32_t>(bound))); }

Box central(Size image, int width, int height) {
  return {(image.width - width) / 2, (image.height - height) / 2, width, height};
}

// Draws fractions that sum to 1, in single precision as in torch.
void draw_dirichlet(std::span<float> fractions, double alpha, base::Random& random) {
  std::array<double, MixDrawing::kMost> drawn{};
  double sum = 0;
  for (std::size_t i = 0; i < fractions.size(); ++i) sum += drawn[i] = draw_gamma(alpha, random);
  // if alpha is so small that all values underflow, one element gets all of the weight
  if (sum <= 0) sum = drawn[random.below(static_cast<std::uint32_t>(fractions.size()))] = 1;
  for (std::size_t i = 0; i < fractions.size(); ++i) fractions[i] = static_cast<float>(drawn[i] / sum);
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

std::optional<Box> draw_erased(Size image, Range scale, Range ratio, int count, base::Random& random) {
  const double area = static_cast<double>(image.height) * image.width;
  const double log_low = std::log(ratio.low), log_high = std::log(ratio.high);
  for (int i = 0; i < kTries; ++i) {
    const double target = random.uniform(scale.low, scale.high) * area / count;
    const double aspect = std::exp(random.uniform(log_low, log_high));
    const int height = rounded_side(std::sqrt(target * aspect));
    const int width = rounded_side(std::sqrt(target / aspect));
    if (height >= image.height || width >= image.width) continue;
    const int top = below(image.height - height + 1, random);
    const int left = below(image.width - width + 1, random);
    return Box{left, top, width, height};
  }
  return std::nullopt;
}

double draw_normal(base::Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// Draws by the method of Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for alpha below
// 1, the result is scaled by a power of a uniform number.
double draw_gamma(double alpha, base::Random& random) {
  const double boost = alpha < 1 ? std::pow(1 - random.uniform(), 1 / alpha) : 1;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = 1 - random.uniform();
    if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return boost * d * v;
  }
}

MixDrawing draw_mix(int width, double alpha, base::Random& random) {
  FEEDLINE_CHECK(width >= 1 && width <= MixDrawing::kMost);
  MixDrawing drawn{.width = width};
  std::array<float, 2> shares{};
  draw_dirichlet(shares, alpha, random);
  drawn.image = shares[0];
  const auto chains = std::span(drawn.chains).first(static_cast<std::size_t>(width));
  draw_dirichlet(chains, alpha, random);
  for (float& weight : chains) weight *= shares[1];
  return drawn;
}

namespace {

// Computes timm's weights, in single precision, for blending chains one after another so that each has its share at the
// end.
void blend_in_turn(float all, MixDrawing& drawn) {
  drawn.in_turn = true;
  float left = 1;
  for (std::size_t i = static_cast<std::size_t>(drawn.width); i-- > 0;) {
    float& weight = drawn.chains[i];
    weight = left > 0 ? weight * all / left : 0;
    left *= 1 - weight;
  }
}

}  // namespace

MixDrawing draw_timm_mix(int width, double alpha, bool in_turn, base::Random& random) {
  FEEDLINE_CHECK(width >= 1 && width <= MixDrawing::kMost);
  MixDrawing drawn{.width = width};
  draw_dirichlet(std::span(drawn.chains).first(static_cast<std::size_t>(width)), alpha, random);
  std::array<float, 2> shares{};
  draw_dirichlet(shares, alpha, random);
  if (in_turn)
    blend_in_turn(shares[0], drawn);
  else
    drawn.blended = shares[0];
  return drawn;
}

int draw_depth(int given, base::Random& random) { return given > 0 ? given : 1 + below(3, random); }

std::size_t draw_choice(std::size_t count, std::span<const double> weights, base::Random& random) {
  if (weights.empty()) return random.below(static_cast<std::uint32_t>(count));
  double at = std::accumulate(weights.begin(), weights.end(), 0.0) * random.uniform();
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    if (at < weights[i]) break;
    at -= weights[i];
  }
  return chosen;
}

Order draw_order(std::size_t count, base::Random& random) {
  FEEDLINE_CHECK(count <= kMostNested);
  Order order{};
  std::iota(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), std::uint8_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  return order;
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

DistortDrawing draw_distortion(const op::RandomPhotometricDistort& distort, base::Random& random) {
  DistortDrawing drawn;
  const auto draw = [&](const Range& range) -> std::optional<double> {
    if (!draw_coin(distort.p, random)) return std::nullopt;
    drawn.changes = true;
    return random.uniform(range.low, range.high);
  };
  drawn.jitter.brightness = draw(distort.brightness);
  drawn.jitter.contrast = draw(distort.contrast);
  drawn.jitter.saturation = draw(distort.saturation);
  drawn.jitter.hue = draw(distort.hue);
  if (!draw_coin(0.5, random)) drawn.jitter.order = {0, 2, 3, 1};  // contrast is last
  if (!draw_coin(distort.p, random)) return drawn;
  std::array<std::uint8_t, 3> channels{0, 1, 2};
  for (std::size_t i = 2; i > 0; --i) std::swap(channels[i], channels[random.below(static_cast<std::uint32_t>(i + 1))]);
  drawn.channels = channels;
  return drawn;
}

std::optional<Padding> draw_zoom_out(const op::RandomZoomOut& zoom, Size image, base::Random& random) {
  if (!draw_coin(zoom.p, random)) return std::nullopt;
  const double side = random.uniform(zoom.side_range.low, zoom.side_range.high);
  const int width = static_cast<int>(image.width * side), height = static_cast<int>(image.height * side);
  const int left = static_cast<int>((width - image.width) * random.uniform());
  const int top = static_cast<int>((height - image.height) * random.uniform());
  return Padding{left, top, width - (left + image.width), height - (top + image.height)};
}

Size resized_size(Size image, const op::Resize& resize) {
  if (resize.size.width != 0) return resize.size;
  const std::int64_t shorter = std::min(image.height, image.width);
  const std::int64_t longer = std::max(image.height, image.width);
  // Python's int(a * b / c): one correctly rounded division, then truncation
  const auto scaled = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    const double quotient = static_cast<double>(a * b) / static_cast<double>(c);
    return static_cast<std::int64_t>(quotient);
  };
  const bool by_longer = resize.size.height == 0;
  std::int64_t short_side = by_longer ? scaled(*resize.max_size, shorter, longer) : resize.size.height;
  std::int64_t long_side = by_longer ? *resize.max_size : scaled(short_side, longer, shorter);
  if (!by_longer && resize.max_size && long_side > *resize.max_size) {
    short_side = scaled(*resize.max_size, short_side, long_side);
    long_side = *resize.max_size;
  }
  constexpr std::int64_t kMost = 2147483647;  // the caller rejects sizes that are too large; the conversion must not
                                              // overflow
  const int short_int = static_cast<int>(std::min(short_side, kMost));
  const int long_int = static_cast<int>(std::min(long_side, kMost));
  return image.width <= image.height ? Size{long_int, short_int} : Size{short_int, long_int};
}

namespace {

// Python's int(); the caller rejects values that overflow.
int truncated(double value) { return static_cast<int>(std::min(value, 2147483647.0)); }

}  // namespace

int draw_edge(const op::RandomResize& resize, base::Random& random) {
  return resize.min_size + below(resize.max_size - resize.min_size, random);
}

Size draw_short_side(const op::RandomShortSide& resize, Size image, base::Random& random) {
  const int edge = resize.min_sizes[random.below(static_cast<std::uint32_t>(resize.min_sizes.size()))];
  double ratio = static_cast<double>(edge) / std::min(image.height, image.width);
  if (resize.max_size)
    ratio = std::min(ratio, static_cast<double>(*resize.max_size) / std::max(image.height, image.width));
  return {truncated(image.height * ratio), truncated(image.width * ratio)};
}

// Computes in single precision, like torch.rand and computations with its results.
float draw_scale(const Range& range, base::Random& random) {
  const float share = static_cast<float>(random.bits() >> 8) * 0x1p-24F;
  return static_cast<float>(range.low) + share * static_cast<float>(range.high - range.low);
}

Size jittered_size(const op::ScaleJitter& jitter, Size image, float scale) {
  const double fitting = std::min(static_cast<double>(jitter.target_size[1]) / image.height,
                                  static_cast<double>(jitter.target_size[0]) / image.width);
  const float ratio = static_cast<float>(fitting) * scale;
  return {truncated(static_cast<float>(image.height) * ratio), truncated(static_cast<float>(image.width) * ratio)};
}

Box draw_crop_or_pad(Size image, Size crop, base::Random& random) {
  const auto begin = [&](int side, int wanted) {
    const int drawn = below(std::abs(side - wanted) + 1, random);
    return side < wanted ? -drawn : drawn;
  };
  const int top = begin(image.height, crop.height);
  return {begin(image.width, crop.width), top, crop.width, crop.height};
}

RatioDrawing draw_ratio(const op::ResizeKeepRatio& resize, base::Random& random) {
  RatioDrawing drawn;
  if (draw_coin(resize.scale_p, random)) {
    const double factor = random.uniform(resize.scale_range.low, resize.scale_range.high);
    drawn.scale = resize.scales_area ? 1 / std::sqrt(factor) : factor;
  }
  if (draw_coin(resize.aspect_p, random))
    drawn.aspect = std::exp(random.uniform(std::log(resize.aspect_range.low), std::log(resize.aspect_range.high)));
  return drawn;
}

Size keep_ratio_size(const op::ResizeKeepRatio& resize, Size image, const RatioDrawing& drawn) {
  const double by_height = static_cast<double>(image.height) / resize.size.height;
  const double by_width = static_cast<double>(image.width) / resize.size.width;
  const double ratio =
      std::max(by_height, by_width) * resize.longest + std::min(by_height, by_width) * (1 - resize.longest);
  const double aspect = std::sqrt(drawn.aspect);
  return {rounded_side(image.height * (drawn.scale / aspect) / ratio),
          rounded_side(image.width * (drawn.scale * aspect) / ratio)};
}

Size letterboxed_size(Size image, const op::Letterbox& letterbox) {
  double ratio = std::min(static_cast<double>(letterbox.size.height) / image.height,
                          static_cast<double>(letterbox.size.width) / image.width);
  if (!letterbox.scale_up) ratio = std::min(ratio, 1.0);
  return {rounded_side(image.height * ratio), rounded_side(image.width * ratio)};
}

Padding plan_pad_to(Size image, Size size, PadPosition position) {
  const int width = size.width - image.width, height = size.height - image.height;
  if (position == PadPosition::kTopLeft) return {0, 0, width, height};
  return {width / 2, height / 2, (width + 1) / 2, (height + 1) / 2};
}

namespace {

// Halves a number of pixels, which may be negative.
int half_of(int pixels, bool rounds_down) {
  return rounds_down ? (pixels - (pixels & 1)) / 2 : static_cast<int>(round_even(pixels / 2.0));
}

}  // namespace

CenterCropPlan plan_center_crop(Size image, Size crop, bool rounds_down) {
  CenterCropPlan plan;
  const int more_width = std::max(0, crop.width - image.width);
  const int more_height = std::max(0, crop.height - image.height);
  plan.padding = {more_width / 2, more_height / 2, (more_width + 1) / 2, (more_height + 1) / 2};
  const Size whole = padded(image, plan.padding);
  plan.box = {half_of(whole.width - crop.width, rounds_down), half_of(whole.height - crop.height, rounds_down),
              crop.width, crop.height};
  return plan;
}

Box central_box(Size image, const op::CenterCrop& crop) {
  if (crop.rounds_down) {  // for a smaller image, the start of its border
    const CenterCropPlan plan = plan_center_crop(image, crop.size, true);
    return {plan.box.left - plan.padding.left, plan.box.top - plan.padding.top, crop.size.width, crop.size.height};
  }
  return {half_of(image.width - crop.size.width, false), half_of(image.height - crop.size.height, false),
          crop.size.width, crop.size.height};
}

Padding RandomCropPadding::sum() const {
  return {always.left + width_needed.left, always.top + height_needed.top, always.right + width_needed.right,
          always.bottom + height_needed.bottom};
}

Box plan_corner_crop(Size image, const op::CornerCrop& crop) {
  const int right = image.width - crop.size.width, bottom = image.height - crop.size.height;
  const auto box = [&](int left, int top) { return Box{left, top, crop.size.width, crop.size.height}; };
  switch (crop.corner) {
    case Corner::kTopLeft:
      return box(0, 0);
    case Corner::kTopRight:
      return box(right, 0);
    case Corner::kBottomLeft:
      return box(0, bottom);
    case Corner::kBottomRight:
      return box(right, bottom);
    case Corner::kCenter:
      break;
  }
  return plan_center_crop(image, crop.size).box;
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
