// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which augmentations a sample gets: AutoAugment, RandAugment and TrivialAugmentWide by torchvision's tables, and what
// timm's config strings describe ("rand-m9-mstd0.5-inc1", "original-mstd0.5", "augmix-m5-w4").

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

// Appends what is drawn for an image of this size, in the order in which it is to be done. Nothing is appended for
// kIdentity, nor where a probability says no. Requires: room for `num_ops` or `depth`, two of AutoAugment.
void draw_auto_augment(AutoAugmentPolicy policy, Size image, base::Random& random, Augmentations& drawn,
                       TorchvisionVersion version = TorchvisionVersion::kV1);
// Requires: 0 <= magnitude < bins.
void draw_rand_augment(int num_ops, int magnitude, int bins, Size image, base::Random& random, Augmentations& drawn,
                       TorchvisionVersion version = TorchvisionVersion::kV1);
void draw_trivial_augment_wide(int bins, Size image, base::Random& random, Augmentations& drawn,
                               TorchvisionVersion version = TorchvisionVersion::kV1);

// One chain of AugMix: `depth` augmentations of magnitudes below `severity`. all_ops: brightness, colour, contrast and
// sharpness are among them.
void draw_aug_mix_chain(int severity, int depth, bool all_ops, Size image, base::Random& random, Augmentations& drawn);

// A policy that one of timm's strings describes. Immutable.
class TimmPolicy {
 public:
  struct Entry {
    Augmentation augmentation = Augmentation::kIdentity;
    TimmScale scale = TimmScale::kPlain;
    double probability = 0.5;
    double magnitude = 10;
    double weight = 1;
  };

  // What "augmix" mixes; its depth is drawn for each chain where it is below 1.
  struct Mix {
    int width = 3, depth = -1;
    double alpha = 1;
    bool in_turn = false;  // each chain is blended with what the ones before made of the image
  };

  // `translate`: how far translations go at level 10, of the image's side. kConfig: not such a string, or a section
  // that timm does not have.
  static Result<TimmPolicy> parse(std::string_view config, double translate = 0.45);

  // Requires: no mix().
  void draw(Size image, base::Random& random, Augmentations& drawn) const;
  const std::optional<Mix>& mix() const { return mix_; }
  // One chain of the mix.
  void draw_chain(int depth, Size image, base::Random& random, Augmentations& drawn) const;
  // For tests: what there is to choose from. AutoAugment's are in twos that go together.
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
  TimmLevel level_;  // but for the magnitude
  std::optional<Mix> mix_;
};

}  // namespace feedline::transform
