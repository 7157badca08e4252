// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights for one direction of a resize, in the 8-bit fixed point of Pillow or torch.

#include <cstdint>
#include <vector>

#include "feedline/operation.h"
#include "memory/planes.h"

namespace feedline::transform {

// The number of fractional bits in a weight: 32 minus 8 for the pixel, and 2 for sums outside [0, 1] with negative
// weights.
inline constexpr int kWeightBits = 32 - 8 - 2;

// A resize in one direction from `in` to `out` pixels, for the output positions [begin, begin + count). reversed:
// positions are in descending order, which flips the image at no cost.
struct AxisRequest {
  int in = 1, out = 1;
  int begin = 0, count = 1;
  Interpolation interpolation = Interpolation::kBilinear;
  bool reversed = false;
  friend bool operator==(const AxisRequest&, const AxisRequest&) = default;
};

// Returns the source positions [begin, end) that the request reads. Takes constant time, except for kNearest.
struct AxisSpan {
  int begin = 0, end = 0;
};
AxisSpan source_span(const AxisRequest& request);

// The unrounded weights of a request, for pixels with more than 8 bits.
struct AxisWeights {
  int taps = 0;                  // the maximum number of weights of any position
  std::vector<int> first, used;  // per output position; relative to the origin
  std::vector<double> weights;   // taps per output position; those from `used` on are 0

  // origin: the source position that is stored as 0.
  void compute(const AxisRequest& request, int origin);
};

// Stores the first source position and the number of weighted positions for each output position. Each thread reuses
// one table, and recomputes it only if the request changes.
class AxisTable {
 public:
  // origin: the source position that is stored as 0.
  void compute(const AxisRequest& request, int origin);

  // Converts weights of pixels to weights of a plane's samples: a pixel's weight is distributed over the samples from
  // which the pixel is computed. `exact` is a table for pixels with origin 0, whose position 0 is the image's column or
  // row `pixel`. Positions in the result are relative to axis.first. Requires: the plane has all samples for the pixels
  // that `exact` uses.
  void fold(const AxisTable& exact, const memory::PlaneAxis& axis, int pixel);

  int count() const { return count_; }
  int taps() const { return taps_; }  // the maximum of any position
  int first(int i) const { return first_[static_cast<std::size_t>(i)]; }
  int used(int i) const { return used_[static_cast<std::size_t>(i)]; }
  // taps() weights, of which those from used(i) on are 0
  const std::int32_t* weights(int i) const { return weights_.data() + static_cast<std::size_t>(i) * stride_; }
  // Returns whether the table copies source pixels unchanged and in order, so that only an offset remains.
  bool identity() const { return identity_; }

 private:
  void compute_nearest();
  void compute_filtered();

  AxisRequest request_;
  int origin_ = 0;
  bool valid_ = false;
  int count_ = 0, taps_ = 0;
  std::size_t stride_ = 0;
  bool identity_ = false;
  std::vector<std::int32_t> first_, used_, weights_;
  std::vector<double> exact_;  // one position's weights before rounding
  std::vector<std::int32_t> folded_;
};

}  // namespace feedline::transform
