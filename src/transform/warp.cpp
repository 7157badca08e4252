// SPDX-License-Identifier: Apache-2.0
#include "transform/warp.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "transform/augment/sampling.h"
#include "transform/kernels/border_source.h"
#include "transform/kernels/pixel_ops/geometry.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

Point middle_of(Size image) { return {image.width * 0.5, image.height * 0.5}; }

double draw_within(const Range& range, base::Random& random) { return random.uniform(range.low, range.high); }

// Draws a whole number of pixels from -most to most.
double draw_shift(double most, base::Random& random) { return std::nearbyint(random.uniform(-most, most)); }

PixelOperation operation_of(const AffineWarp& affine, const Warp& warp, Size image) {
  const Point center = affine.center.value_or(middle_of(image));
  return pixel_op::Affine{inverse_affine_matrix(center, affine.angle, affine.translate, affine.scale, affine.shear),
                          warp.interpolation, warp.fill, std::nullopt};
}
PixelOperation operation_of(const RotationWarp& rotation, const Warp& warp, Size /*image*/) {
  return pixel_op::Rotate{rotation.angle, warp.interpolation, rotation.expand, rotation.center, warp.fill};
}
PixelOperation operation_of(const PerspectiveWarp& perspective, const Warp& warp, Size /*image*/) {
  return pixel_op::Perspective{perspective_coefficients(perspective.start, perspective.end), warp.interpolation,
                               warp.fill, std::nullopt};
}
PixelOperation operation_of(const ElasticWarp&, const Warp&, Size) {
  FEEDLINE_CHECK(!"an elastic warp needs its displacement");
  return pixel_op::Invert{};
}

// Computes torchvision's blur window, from the centre outwards; empty if there is no blur.
void compute_window(double sigma_of_size, double sigma, AlignedVector<float>& weights) {
  const int size = static_cast<int>(8 * sigma_of_size + 1) | 1;
  weights.resize(static_cast<std::size_t>(size / 2) + 1);
  double sum = 0;
  const auto height = [&](std::size_t i) {
    const double point = static_cast<double>(i) / std::sqrt(2.0) / sigma;
    return std::exp(-point * point);
  };
  for (std::size_t i = 0; i < weights.size(); ++i) sum += (i == 0 ? 1 : 2) * height(i);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(height(i) / sum);
}

float draw_noise(base::Random& random) { return static_cast<float>(random.bits() >> 8) * 0x1p-24F * 2 - 1; }

// The displacement in one direction: noise that is blurred along rows and then along columns, multiplied by `alpha` and
// divided by `side`.
class Displacement {
 public:
  Displacement(Size size, ElasticScratch& scratch)
      : size_(size), width_(static_cast<std::size_t>(size.width)), scratch_(scratch) {}

  void make(Point sigma, std::size_t direction, double alpha, base::Random& random, float* out) {
    const bool blurs = sigma[direction] > 0;
    compute_window(blurs ? sigma[direction] : 0, blurs ? sigma[0] : 1, scratch_.columns);
    compute_window(blurs ? sigma[direction] : 0, blurs ? sigma[1] : 1, scratch_.rows);
    const int radius = static_cast<int>(scratch_.rows.size()) - 1;
    blur_along(radius, random);
    const auto factor = static_cast<float>(alpha),
               side = static_cast<float>(direction == 0 ? size_.width : size_.height);
    for (int y = 0; y < size_.height; ++y, out += width_) {
      active_kernels().pixels->blur_row(blurred_row(radius + y), scratch_.rows.data(), radius, size_.width, width_,
                                        out);
      for (std::size_t x = 0; x < width_; ++x) out[x] = out[x] * factor / side;
    }
  }

 private:
  float* blurred_row(int y) { return scratch_.blurred.data() + static_cast<std::size_t>(y) * width_; }

  // Blurs all rows, with `radius` reflected rows above and below.
  void blur_along(int radius, base::Random& random) {
    scratch_.bordered.resize(width_ + 2 * static_cast<std::size_t>(radius));
    scratch_.blurred.resize(width_ * static_cast<std::size_t>(size_.height + 2 * radius));
    float* const middle = scratch_.bordered.data() + radius;
    const auto reflect = [&](int x) { middle[x] = middle[border_source(x, size_.width, PaddingMode::kReflect)]; };
    for (int y = 0; y < size_.height; ++y) {
      for (std::size_t x = 0; x < width_; ++x) middle[x] = draw_noise(random);
      for (int i = 1; i <= radius; ++i) {
        reflect(-i);
        reflect(size_.width - 1 + i);
      }
      active_kernels().pixels->blur_row(middle, scratch_.columns.data(), radius, 1, width_, blurred_row(radius + y));
    }
    const auto copy = [&](int y) {
      std::copy_n(blurred_row(radius + border_source(y, size_.height, PaddingMode::kReflect)), width_,
                  blurred_row(radius + y));
    };
    for (int i = 1; i <= radius; ++i) {
      copy(-i);
      copy(size_.height - 1 + i);
    }
  }

  const Size size_;
  const std::size_t width_;
  ElasticScratch& scratch_;
};

}  // namespace

Size size_after(const Warp& warp, Size image) {
  const auto* const rotation = std::get_if<RotationWarp>(&warp.parameters);
  if (!rotation) return image;
  return plan_rotation(image, rotation->angle, rotation->expand, rotation->center).out;
}

PixelOperation pixel_operation(const Warp& warp, Size image) {
  return std::visit([&](const auto& parameters) { return operation_of(parameters, warp, image); }, warp.parameters);
}

std::span<const float> elastic_displacement(const ElasticWarp& elastic, Size size, ElasticScratch& scratch) {
  const std::size_t pixels = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
  scratch.displacement.resize(2 * pixels);
  base::Random random(elastic.key, elastic.stream);
  Displacement displacement(size, scratch);
  displacement.make(elastic.sigma, 0, elastic.alpha[0], random, scratch.displacement.data());
  displacement.make(elastic.sigma, 1, elastic.alpha[1], random, scratch.displacement.data() + pixels);
  return {scratch.displacement.data(), 2 * pixels};
}

RotationWarp draw_rotation(const op::RandomRotation& rotation, base::Random& random) {
  return {draw_within(rotation.degrees, random), rotation.expand, rotation.center};
}

AffineWarp draw_affine(const op::RandomAffine& affine, Size image, base::Random& random) {
  AffineWarp drawn;
  drawn.center = affine.center;
  drawn.angle = draw_within(affine.degrees, random);
  if (affine.translate) {
    const double x = draw_shift((*affine.translate)[0] * image.width, random);
    drawn.translate = {x, draw_shift((*affine.translate)[1] * image.height, random)};
  }
  if (affine.scale) drawn.scale = draw_within(*affine.scale, random);
  if (affine.shear_x) drawn.shear[0] = draw_within(*affine.shear_x, random);
  if (affine.shear_y) drawn.shear[1] = draw_within(*affine.shear_y, random);
  return drawn;
}

PerspectiveWarp draw_perspective(double distortion_scale, Size image, base::Random& random) {
  const int most_x = static_cast<int>(distortion_scale * (image.width / 2));
  const int most_y = static_cast<int>(distortion_scale * (image.height / 2));
  const auto inwards = [&random](int most) { return random.below(static_cast<std::uint32_t>(most) + 1); };
  const double right = image.width - 1, bottom = image.height - 1;
  PerspectiveWarp drawn{{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}}, {}};
  for (std::size_t i = 0; i < 4; ++i) {
    const double x = inwards(most_x), y = inwards(most_y);
    drawn.end[i] = {i == 0 || i == 3 ? x : right - x, i < 2 ? y : bottom - y};
  }
  return drawn;
}

}  // namespace feedline::transform
