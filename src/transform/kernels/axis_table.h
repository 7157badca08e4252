// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights for one direction of a resize, in Pillow's or torch's 8-bit fixed point.

#include <cstdint>
#include <vector>

#include "feedline/operation.h"
#include "memory/planes.h"

namespace feedline::transform {

// Fractional bits of a weight: 32 minus 8 for the pixel and 2 for sums outside [0, 1] with negative weights.
inline constexpr int kWeightBits = 32 - 8 - 2;

// A resize of one direction from `in` to `out` pixels, for the positions [begin, begin + count) of the output.
// `reversed`: in descending order, which flips at no cost.
struct AxisRequest {
  int in = 1, out = 1;
  int begin = 0, count = 1;
  Interpolation interpolation = Interpolation::kBilinear;
  bool reversed = false;
  friend bool operator==(const AxisRequest&, const AxisRequest&) = default;
};

// Source positions [begin, end) that the request reads. Constant time, except for kNearest.
struct AxisSpan {
  int begin = 0, end = 0;
};
AxisSpan source_span(const AxisRequest& request);

// For each output position, the first source position and the number of weighted positions. Each thread reuses one and
// recomputes it only if the request changes.
class AxisTable {
 public:
  // `origin`: the source position that is stored as 0.
  void compute(const AxisRequest& request, int origin);

  // Converts weights of pixels to weights of a plane's samples: a pixel's weight goes to the samples that it is
  // computed from. `exact` is for pixels, with origin 0, and its position 0 is the image's `pixel`. Positions count
  // from axis.first. Requires: the plane has all samples of the pixels that `exact` uses.
  void fold(const AxisTable& exact, const memory::PlaneAxis& axis, int pixel);

  int count() const { return count_; }
  int taps() const { return taps_; }  // the maximum of any position
  int first(int i) const { return first_[static_cast<std::size_t>(i)]; }
  int used(int i) const { return used_[static_cast<std::size_t>(i)]; }
  // taps() weights, of which those from used(i) on are 0
  const std::int32_t* weights(int i) const { return weights_.data() + static_cast<std::size_t>(i) * stride_; }
  // Returns true if the table copies source pixels unchanged and in order, so that only an offset remains.
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
