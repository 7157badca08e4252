// SPDX-License-Identifier: Apache-2.0

// Processes rows in steps of whole vectors.

#if defined(FEEDLINE_PIXEL_OPS_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_STEPS_INL_H_
#undef FEEDLINE_PIXEL_OPS_STEPS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_STEPS_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "transform/kernels/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {

inline constexpr std::size_t kRgbStep = 3 * kBytes;

// Calls f(in, out) for each kStep bytes, and for a padded copy of the remaining bytes if there are fewer. `out` may be
// `in`.
template <std::size_t kStep, typename F>
HWY_INLINE void in_steps(const std::uint8_t* in, std::size_t count, std::uint8_t* out, F f) {
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) f(in + i, out + i);
  if (i == count) return;
  HWY_ALIGN std::uint8_t last[kStep] = {};
  std::memcpy(last, in + i, count - i);
  f(last, last);
  std::memcpy(out + i, last, count - i);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
