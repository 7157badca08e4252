// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/augmentation_level.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/check.h"
#include "transform/augment/sampling.h"

namespace feedline::transform {
namespace {

struct Magnitudes {
  double shear, rotate, enhance;
  int bits, steps;  // posterize: bits at bin 0, and the reduction at the last bin
};

// The values match _augmentation_space in each class in torchvision.transforms.autoaugment.
constexpr Magnitudes magnitudes_of(AugmentationSpace space) {
  switch (space) {
    case AugmentationSpace::kStandard:
      return {0.3, 30, 0.9, 8, 4};
    case AugmentationSpace::kWide:
      return {0.99, 135, 0.99, 8, 6};
    case AugmentationSpace::kMix:
      return {0.3, 30, 0.9, 4, 4};
  }
  return {};
}

double farthest(AugmentationSpace space, int side) {
  switch (space) {
    case AugmentationSpace::kStandard:
      return 150.0 / 331.0 * side;
    case AugmentationSpace::kWide:
      return 32;
    case AugmentationSpace::kMix:
      return side / 3.0;
  }
  return 0;
}

// torch.linspace computes in single precision, from both ends. The product is not rounded before the addition, as in
// torch's kernels for CPUs that have FMA.
double linspace(double from, double to, int count, int i) {
  const auto low = static_cast<float>(from), high = static_cast<float>(to);
  const float step = (high - low) / static_cast<float>(count - 1);
  if (i < count / 2) return std::fma(step, static_cast<float>(i), low);
  return std::fma(-step, static_cast<float>(count - 1 - i), high);
}

// Rounds half to even in single precision, as torch does. v2 subtracts before it rounds, with the same result.
double bits_at(const Magnitudes& magnitudes, const Bins& bins, int bin) {
  const float fewer =
      static_cast<float>(bin) / (static_cast<float>(bins.count - 1) / static_cast<float>(magnitudes.steps));
  return magnitudes.bits - static_cast<double>(std::nearbyint(fewer));
}

// The thresholds of v2 are fractions of 255. Some of v2's thresholds are a millionth above those of v1, so that one
// more value is below the threshold.
double threshold_at(const Bins& bins, int bin) {
  if (bins.version == TorchvisionVersion::kV2) return 255.0 * linspace(1, 0, bins.count, bin);
  return linspace(255, 0, bins.count, bin);
}

constexpr double kLevels = 10;  // timm's levels per full scale

double draw_level(const TimmLevel& level, base::Random& random) {
  double drawn = level.magnitude;
  if (std::isinf(level.noise))
    drawn = random.uniform(0, level.magnitude);
  else if (level.noise > 0)
    drawn += level.noise * draw_normal(random);
  return std::clamp(drawn, 0.0, level.highest);
}

double either_sign(double value, base::Random& random) { return draw_coin(0.5, random) ? -value : value; }

constexpr double kLeastBlur = 0.1, kMostBlur = 2;  // radius

double blur_radius(double share, TimmScale scale, base::Random& random) {
  if (scale == TimmScale::kDrawn) return random.uniform(kLeastBlur, kMostBlur * std::clamp(share, 0.0, 1.0));
  return std::clamp(kLeastBlur + (kMostBlur - kLeastBlur) * share, kLeastBlur, kMostBlur);
}

double enhancing_factor(double share, TimmScale scale, base::Random& random) {
  if (scale == TimmScale::kDesaturating) return 1 - std::clamp(0.5 + 0.5 * share, 0.5, 1.0);
  if (scale != TimmScale::kIncreasing) return share * 1.8 + 0.1;
  return std::max(0.1, 1.0 + either_sign(share * 0.9, random));
}

double kept_bits(double share, TimmScale scale) {
  const double bits = std::floor(share * 4);
  if (scale == TimmScale::kIncreasing) return 4 - bits;
  return scale == TimmScale::kOriginal ? bits + 4 : bits;
}

double threshold(double share, TimmScale scale) {
  const double from_none = std::min(256.0, std::floor(share * 256));
  return scale == TimmScale::kIncreasing ? 256 - from_none : from_none;
}

}  // namespace

void Augmentations::push_back(const DrawnAugmentation& drawn) {
  FEEDLINE_CHECK(size_ < kMost);
  list_[size_++] = drawn;
}

bool moves_pixels(Augmentation augmentation) {
  return augmentation >= Augmentation::kShearX && augmentation <= Augmentation::kRotate;
}

PixelOperation pixel_operation(const DrawnAugmentation& drawn, Size image, Interpolation interpolation,
                               const std::array<std::uint8_t, 3>& fill) {
  const double amount = drawn.amount;
  const auto affine = [&](Point center, Point translate, Point shear) {
    return pixel_op::Affine{inverse_affine_matrix(center, 0, translate, 1, shear), interpolation, fill, std::nullopt};
  };
  // torchvision converts the tangent to degrees and back, which affects the last bits of the matrix
  const double shear = std::atan(amount) * (180 / std::numbers::pi);
  const Point middle{image.width * 0.5, image.height * 0.5};
  switch (drawn.augmentation) {
    case Augmentation::kShearX:
      return affine({0, 0}, {0, 0}, {shear, 0});
    case Augmentation::kShearY:
      return affine({0, 0}, {0, 0}, {0, shear});
    case Augmentation::kTranslateX:
      return affine(middle, {amount, 0}, {0, 0});
    case Augmentation::kTranslateY:
      return affine(middle, {0, amount}, {0, 0});
    case Augmentation::kRotate:
      return pixel_op::Rotate{amount, interpolation, false, std::nullopt, fill};
    case Augmentation::kBrightness:
      return pixel_op::Brightness{amount};
    case Augmentation::kColor:
      return pixel_op::Saturation{amount};
    case Augmentation::kContrast:
      return pixel_op::Contrast{amount};
    case Augmentation::kSharpness:
      return pixel_op::Sharpness{amount};
    case Augmentation::kPosterize:
      return pixel_op::Posterize{static_cast<int>(amount)};
    case Augmentation::kSolarize:
      return pixel_op::Solarize{amount};
    case Augmentation::kSolarizeAdd:
      return pixel_op::SolarizeAdd{.add = static_cast<int>(amount)};
    case Augmentation::kAutoContrast:
      return pixel_op::Autocontrast{};
    case Augmentation::kEqualize:
      return pixel_op::Equalize{};
    case Augmentation::kInvert:
      return pixel_op::Invert{};
    case Augmentation::kGaussianBlur:
      return pixel_op::PillowBlur{amount};
    case Augmentation::kIdentity:
    case Augmentation::kGrayscale:
      break;
  }
  FEEDLINE_CHECK(!"not one operation on pixels");
  return pixel_op::Invert{};
}

PixelOperation timm_operation(const DrawnAugmentation& drawn, Size image, Interpolation interpolation,
                              const std::array<std::uint8_t, 3>& fill) {
  const double amount = drawn.amount;
  const auto affine = [&](const AffineMatrix& matrix) {
    return pixel_op::Affine{matrix, interpolation, fill, std::nullopt};
  };
  switch (drawn.augmentation) {
    case Augmentation::kShearX:
      return affine({1, amount, 0, 0, 1, 0});
    case Augmentation::kShearY:
      return affine({1, 0, 0, amount, 1, 0});
    case Augmentation::kTranslateX:
      return affine({1, 0, amount, 0, 1, 0});
    case Augmentation::kTranslateY:
      return affine({1, 0, 0, 0, 1, amount});
    default:
      return pixel_operation(drawn, image, interpolation, fill);
  }
}

bool is_signed(Augmentation augmentation) {
  return augmentation >= Augmentation::kShearX && augmentation <= Augmentation::kSharpness;
}

bool has_magnitude(Augmentation augmentation) {
  return is_signed(augmentation) || augmentation == Augmentation::kPosterize ||
         augmentation == Augmentation::kSolarize || augmentation == Augmentation::kSolarizeAdd;
}

double amount_at(Augmentation augmentation, const Bins& bins, int bin, bool negative, Size image) {
  FEEDLINE_CHECK(bin >= 0 && bin < bins.count && bins.count >= 2);
  const Magnitudes most = magnitudes_of(bins.space);
  const auto signed_up_to = [&](double high) {
    const double value = linspace(0, high, bins.count, bin);
    return negative ? -value : value;
  };
  switch (augmentation) {
    case Augmentation::kShearX:
    case Augmentation::kShearY:
      return signed_up_to(most.shear);
    case Augmentation::kTranslateX:
      return std::trunc(signed_up_to(farthest(bins.space, image.width)));
    case Augmentation::kTranslateY:
      return std::trunc(signed_up_to(farthest(bins.space, image.height)));
    case Augmentation::kRotate:
      return signed_up_to(most.rotate);
    case Augmentation::kBrightness:
    case Augmentation::kColor:
    case Augmentation::kContrast:
    case Augmentation::kSharpness:
      return 1.0 + signed_up_to(most.enhance);
    case Augmentation::kPosterize:
      return bits_at(most, bins, bin);
    case Augmentation::kSolarize:
      return threshold_at(bins, bin);
    case Augmentation::kIdentity:
    case Augmentation::kAutoContrast:
    case Augmentation::kEqualize:
    case Augmentation::kInvert:
      return 0;
    case Augmentation::kSolarizeAdd:
    case Augmentation::kGrayscale:
    case Augmentation::kGaussianBlur:
      break;
  }
  FEEDLINE_CHECK(!"torchvision has no such augmentation");
  return 0;
}

double draw_timm_amount(Augmentation augmentation, TimmScale scale, const TimmLevel& level, Size image,
                        base::Random& random) {
  const double share = draw_level(level, random) / kLevels;
  switch (augmentation) {
    case Augmentation::kShearX:
    case Augmentation::kShearY:
      return either_sign(share * 0.3, random);
    case Augmentation::kTranslateX:
      return either_sign(share * level.translate, random) * image.width;
    case Augmentation::kTranslateY:
      return either_sign(share * level.translate, random) * image.height;
    case Augmentation::kRotate:
      return either_sign(share * 30, random);
    case Augmentation::kBrightness:
    case Augmentation::kColor:
    case Augmentation::kContrast:
    case Augmentation::kSharpness:
      return enhancing_factor(share, scale, random);
    case Augmentation::kPosterize:
      return kept_bits(share, scale);
    case Augmentation::kSolarize:
      return threshold(share, scale);
    case Augmentation::kSolarizeAdd:
      return std::min(128.0, std::floor(share * 110));
    case Augmentation::kGaussianBlur:
      return blur_radius(share, scale, random);
    case Augmentation::kIdentity:
    case Augmentation::kAutoContrast:
    case Augmentation::kEqualize:
    case Augmentation::kInvert:
    case Augmentation::kGrayscale:
      return 0;
  }
  return 0;
}

}  // namespace feedline::transform
