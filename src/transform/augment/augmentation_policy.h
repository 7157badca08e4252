// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses augmentations for a sample: AutoAugment, RandAugment and TrivialAugmentWide by torchvision's tables, and the
// policies of timm's config strings ("rand-m9-mstd0.5-inc1", "original-mstd0.5", "augmix-m5-w4").

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/augment/augmentation_level.h"

namespace feedline::transform {

// Appends the augmentations drawn for an image of this size, in order. Appends nothing for kIdentity, or if the
// augmentation is skipped at random. Requires: there is room for `num_ops` or `depth` augmentations, or for two with
// AutoAugment.
void draw_auto_augment(AutoAugmentPolicy policy, Size image, base::Random& random, Augmentations& drawn,
                       TorchvisionVersion version = TorchvisionVersion::kV1);
// Requires: 0 <= magnitude < bins.
void draw_rand_augment(int num_ops, int magnitude, int bins, Size image, base::Random& random, Augmentations& drawn,
                       TorchvisionVersion version = TorchvisionVersion::kV1);
void draw_trivial_augment_wide(int bins, Size image, base::Random& random, Augmentations& drawn,
                               TorchvisionVersion version = TorchvisionVersion::kV1);

// Draws one chain of AugMix: `depth` augmentations with magnitudes below `severity`. all_ops: include brightness,
// colour, contrast and sharpness.
void draw_aug_mix_chain(int severity, int depth, bool all_ops, Size image, base::Random& random, Augmentations& drawn);

// A policy that is described by one of timm's strings. Immutable.
class TimmPolicy {
 public:
  struct Entry {
    Augmentation augmentation = Augmentation::kIdentity;
    TimmScale scale = TimmScale::kPlain;
    double probability = 0.5;
    double magnitude = 10;
    double weight = 1;
  };

  // The mixing parameters of "augmix"; if depth is below 1, each chain draws its own depth.
  struct Mix {
    int width = 3, depth = -1;
    double alpha = 1;
    bool in_turn = false;  // blends each chain with the result of the chains before
  };

  // `translate`: the translation at level 10, as a fraction of the image's side. kConfig: the string is invalid, or has
  // a section that timm does not have.
  static Result<TimmPolicy> parse(std::string_view config, double translate = 0.45);

  // Requires: no mix().
  void draw(Size image, base::Random& random, Augmentations& drawn) const;
  const std::optional<Mix>& mix() const { return mix_; }
  // Draws one chain of the mix.
  void draw_chain(int depth, Size image, base::Random& random, Augmentations& drawn) const;
  // Returns the available choices, for tests. AutoAugment's choices are stored as consecutive pairs.
  std::span<const Entry> entries() const { return entries_; }

 private:
  TimmPolicy() = default;

  static Result<TimmPolicy> parse_mix(std::string_view config);
  static Result<TimmPolicy> parse_choice(std::string_view config);
  void draw_entry(const Entry& entry, Size image, base::Random& random, Augmentations& drawn) const;
  void draw_weighted(Size image, base::Random& random, Augmentations& drawn) const;

  enum class Choice : std::uint8_t { kEqual, kWeighted, kPairs };
  std::vector<Entry> entries_;
  Choice choice_ = Choice::kEqual;
  int layers_ = 2;
  TimmLevel level_;  // without the magnitude
  std::optional<Mix> mix_;
};

}  // namespace feedline::transform
