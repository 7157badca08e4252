// SPDX-License-Identifier: Apache-2.0
#pragma once

// The changes from which automatic augmentations choose, and the meaning of magnitudes in torchvision's tables (bins)
// and timm's (levels from 0 to 10, with noise). All functions are pure, except that drawing advances `random`.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"

namespace feedline::transform {

// An augmentation and its amount: the tangent for shears, pixels for translations, degrees for rotation, Pillow's
// factor for kBrightness to kSharpness (1 means no change), the number of remaining bits for kPosterize, the threshold
// for kSolarize, the addend for kSolarizeAdd, otherwise 0.
struct DrawnAugmentation {
  Augmentation augmentation = Augmentation::kIdentity;
  double amount = 0;
};

// The augmentations of a sample, in order. Allocates nothing.
class Augmentations {
 public:
  static constexpr std::size_t kMost = 64;  // maximum per operation; larger numbers are mistakes

  void push_back(const DrawnAugmentation& drawn);  // Requires: size() < kMost
  std::size_t size() const { return size_; }
  const DrawnAugmentation* begin() const { return list_.data(); }
  const DrawnAugmentation* end() const { return list_.data() + size_; }
  const DrawnAugmentation& operator[](std::size_t i) const { return list_[i]; }

 private:
  std::array<DrawnAugmentation, kMost> list_;
  std::size_t size_ = 0;
};

// Returns the operation on the pixels of an image of this size, as in torchvision. Requires: `drawn` is neither
// kIdentity nor kGrayscale.
PixelOperation pixel_operation(const DrawnAugmentation& drawn, Size image, Interpolation interpolation,
                               const std::array<std::uint8_t, 3>& fill);

// Returns the operation as in timm, which uses the matrices of shears and translations directly.
PixelOperation timm_operation(const DrawnAugmentation& drawn, Size image, Interpolation interpolation,
                              const std::array<std::uint8_t, 3>& fill);

// torchvision divides magnitudes into bins, from no change to the largest change.
enum class AugmentationSpace : std::uint8_t {
  kStandard,  // AutoAugment's and RandAugment's
  kWide,      // TrivialAugmentWide's
  kMix,       // AugMix's
};
struct Bins {
  AugmentationSpace space = AugmentationSpace::kStandard;
  int count = 10;  // at least 2
  TorchvisionVersion version = TorchvisionVersion::kV1;
};
// Returns whether the augmentation moves pixels.
bool moves_pixels(Augmentation augmentation);
// Returns whether the sign of the augmentation's amount is random.
bool is_signed(Augmentation augmentation);
// Returns whether the augmentation's amount depends on the bin.
bool has_magnitude(Augmentation augmentation);
// Returns the amount at `bin`, negated if `negative` is true and the augmentation is signed. Requires: 0 <= bin <
// bins.count, and not kSolarizeAdd, which torchvision does not have.
double amount_at(Augmentation augmentation, const Bins& bins, int bin, bool negative, Size image);

// An entry of timm's tables with its probability and level.
struct TimmLevel {
  double magnitude = 10;
  double noise = 0;         // standard deviation of the level; infinity: uniform from 0 to `magnitude`
  double highest = 10;      // levels are clamped to [0, highest]
  double translate = 0.45;  // fraction of the image's side at level 10
};
// The conversion from level to amount, if timm has several. kDesaturating: grey at the highest level. kDrawn: the level
// is the upper limit from which a blur is drawn.
enum class TimmScale : std::uint8_t { kPlain, kIncreasing, kOriginal, kDesaturating, kDrawn };
// Draws the level and the sign. Translations are fractions of the image's side.
double draw_timm_amount(Augmentation augmentation, TimmScale scale, const TimmLevel& level, Size image,
                        base::Random& random);

}  // namespace feedline::transform
