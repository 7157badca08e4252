// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix (torchvision v2, timm): draws the parameters for a batch or one of its rows, and mixes rows in
// place. All functions are pure, except that drawing advances `random`. Nothing is allocated.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/operation.h"

namespace feedline::transform {

// Draws from Beta(alpha, alpha) exactly: with Joehnk's method for alpha up to 1, and with Cheng's BB for larger ones.
// Requires: alpha > 0.
double draw_beta(double alpha, base::Random& random);

// As in LoaderOptions.
struct MixRules {
  double mixup = 0;
  double cutmix = 0;
  double probability = 1;
  double switch_probability = 0.5;
};

// How a row is mixed.
struct Mix {
  enum class Kind : std::uint8_t {
    kNone,   // unchanged
    kBlend,  // row * share + partner * (1 - share)
    kPaste,  // the partner's pixels inside `box`
  };
  Kind kind = Kind::kNone;
  double share = 1;  // the row's own share of the target
  Box box{};
};

// An output row, with the indices of the filled rows from which it is mixed.
struct RowMix {
  std::uint64_t own = 0;
  std::uint64_t partner = 0;
  Mix mix;
};

// image: the size of the image in a row. Requires: an alpha is above 0.
Mix draw_mix(const MixRules& rules, Size image, base::Random& random);
// Returns CutMix's box for a share drawn from Beta, around a centre and clipped to the image, with the share that
// results after clipping.
Mix paste_around(double share, Size image, int x, int y);

// The rows of one image field: each has `channels` planes of that size, or interleaved channels.
struct MixedRows {
  std::byte* data = nullptr;
  DType dtype = DType::kFloat32;  // or kFloat16
  Size image;
  int channels = 3;
  Layout layout = Layout::kNchw;
  std::size_t elements() const;  // of a row
};

// Mixes every row with the row before it, and the first row with the last, like torchvision's roll(1). Requires: count
// > 1.
void mix_rolled(const MixedRows& rows, std::size_t count, const Mix& mix);
// Mixes two rows, each with the original values of the other.
void mix_both(const MixedRows& rows, std::size_t first, std::size_t second, const Mix& of_first, const Mix& of_second);
// Mixes one row with another row, which is not changed. Requires: the two rows are different.
void mix_one(const MixedRows& rows, std::size_t row, std::size_t partner, const Mix& mix);

// Writes the target of a row of class `own` that is mixed with a row of class `partner`, with timm's label smoothing.
// Requires: the classes are below target.size().
void fill_target(std::span<float> target, std::int64_t own, std::int64_t partner, double share, double smoothing);

}  // namespace feedline::transform
