// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix (torchvision v2, timm): what is drawn for a batch or a row of it, and rows that are mixed in place.
// Pure functions, but for `random`, which those that draw advance. Nothing is allocated.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/operation.h"

namespace feedline::transform {

// Of Beta(alpha, alpha), without approximation: Joehnk's method up to 1, Cheng's BB above. Requires: alpha > 0.
double draw_beta(double alpha, base::Random& random);

// As in LoaderOptions.
struct MixRules {
  double mixup = 0;
  double cutmix = 0;
  double probability = 1;
  double switch_probability = 0.5;
};

// What becomes of a row.
struct Mix {
  enum class Kind : std::uint8_t {
    kNone,   // it stays as it is
    kBlend,  // row * share + partner * (1 - share)
    kPaste,  // `box` is the partner's
  };
  Kind kind = Kind::kNone;
  double share = 1;  // of the row itself, in its target
  Box box{};
};

// A row of what comes out: of the rows that were filled.
struct RowMix {
  std::uint64_t own = 0;
  std::uint64_t partner = 0;
  Mix mix;
};

// image: of each field of a row. Requires: an alpha is positive.
Mix draw_mix(const MixRules& rules, Size image, base::Random& random);
// CutMix's box for a share of Beta, around a centre, cut at the borders; and the share that is left then.
Mix paste_around(double share, Size image, int x, int y);

// The rows of one image field: each `channels` planes of that size, or with the channels of a pixel together.
struct MixedRows {
  std::byte* data = nullptr;
  DType dtype = DType::kFloat32;  // or kFloat16
  Size image;
  int channels = 3;
  Layout layout = Layout::kNchw;
  std::size_t elements() const;  // of a row
};

// Every row with the one before it, the first with the last: torchvision's roll(1). Requires: count > 1.
void mix_rolled(const MixedRows& rows, std::size_t count, const Mix& mix);
// Two rows with each other, each with what the other was.
void mix_both(const MixedRows& rows, std::size_t first, std::size_t second, const Mix& of_first, const Mix& of_second);
// One row with another one, which stays. Requires: two rows.
void mix_one(const MixedRows& rows, std::size_t row, std::size_t partner, const Mix& mix);

// The target of a row of class `own`, mixed with one of class `partner`, as timm smooths it. Requires: classes below
// target.size().
void fill_target(std::span<float> target, std::int64_t own, std::int64_t partner, double share, double smoothing);

}  // namespace feedline::transform
