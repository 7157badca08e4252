// SPDX-License-Identifier: Apache-2.0
#pragma once

// The changes that automatic augmentations choose from, and what their magnitudes mean: torchvision's tables (over
// bins) and timm's (levels from 0 to 10, with noise). Pure; what is random advances `random`.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"

namespace feedline::transform {

// An augmentation with its amount: shears the tangent, translations pixels, rotation degrees, the enhancers
// (kBrightness to kSharpness) Pillow's factor (1 changes nothing), kPosterize bits that stay, kSolarize the threshold,
// kSolarizeAdd what is added; others 0.
struct DrawnAugmentation {
  Augmentation augmentation = Augmentation::kIdentity;
  double amount = 0;
};

// The ones of a sample, in the order in which they are to be done. Allocates nothing.
class Augmentations {
 public:
  static constexpr std::size_t kMost = 64;  // of one operation; more is a mistake

  void push_back(const DrawnAugmentation& drawn);  // Requires: fewer than kMost
  std::size_t size() const { return size_; }
  const DrawnAugmentation* begin() const { return list_.data(); }
  const DrawnAugmentation* end() const { return list_.data() + size_; }
  const DrawnAugmentation& operator[](std::size_t i) const { return list_[i]; }

 private:
  std::array<DrawnAugmentation, kMost> list_;
  std::size_t size_ = 0;
};

// What is to be done to an image of this size, as torchvision's functions do it. Requires: not kIdentity or kGrayscale.
PixelOperation pixel_operation(const DrawnAugmentation& drawn, Size image, Interpolation interpolation,
                               const std::array<std::uint8_t, 3>& fill);

// As timm's functions do it: its matrices are those of shears and translations themselves.
PixelOperation timm_operation(const DrawnAugmentation& drawn, Size image, Interpolation interpolation,
                              const std::array<std::uint8_t, 3>& fill);

// torchvision's magnitudes stand in bins, from none to most.
enum class AugmentationSpace : std::uint8_t {
  kStandard,  // AutoAugment's and RandAugment's
  kWide,      // TrivialAugmentWide's
  kMix,       // AugMix's
};
struct Bins {
  AugmentationSpace space = AugmentationSpace::kStandard;
  int count = 10;  // 2 or more
  TorchvisionVersion version = TorchvisionVersion::kV1;
};
// Does it move pixels?
bool moves_pixels(Augmentation augmentation);
// Does the sign of its amount depend on chance?
bool is_signed(Augmentation augmentation);
// Has it bins at all?
bool has_magnitude(Augmentation augmentation);
// The amount at `bin`, and with the sign turned where `negative` and it is signed. Requires: 0 <= bin < bins.count, and
// not kSolarizeAdd, which torchvision has not.
double amount_at(Augmentation augmentation, const Bins& bins, int bin, bool negative, Size image);

// timm's entry: with which probability, and at which level.
struct TimmLevel {
  double magnitude = 10;
  double noise = 0;         // standard deviation of the level; infinity: uniform from 0 to `magnitude`
  double highest = 10;      // levels are cut to [0, highest]
  double translate = 0.45;  // of the image's side, at level 10
};
// How a level becomes an amount, where timm has several ways.
// kDesaturating: a colour
// that grey comes to. kDrawn: a blur that the level only bounds.
enum class TimmScale : std::uint8_t { kPlain, kIncreasing, kOriginal, kDesaturating, kDrawn };
// Draws level and sign. Translations are a share of the image's side.
double draw_timm_amount(Augmentation augmentation, TimmScale scale, const TimmLevel& level, Size image,
                        base::Random& random);

}  // namespace feedline::transform
