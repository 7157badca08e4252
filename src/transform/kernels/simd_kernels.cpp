// SPDX-License-Identifier: Apache-2.0

// Compiles the -inl.h files once per instruction set, and lists the instruction sets that this machine supports.

#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/simd_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "transform/kernels/blend_kernels-inl.h"
#include "transform/kernels/colour_kernels-inl.h"
#include "transform/kernels/emit_kernels-inl.h"
#include "transform/kernels/horizontal_kernels-inl.h"
#include "transform/kernels/linear_row_kernels-inl.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/vertical_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const Kernels* target_kernels() { return nullptr; }  // the scalar kernels are used
#else
const Kernels* target_kernels() {
  static constexpr Kernels kKernels = {
      .name = "",
      .pixels = nullptr,
      .plan_row = plan_row,
      .horizontal = horizontal,
      .vertical = vertical,
      .split = split,
      .ycc_to_rgb = ycc_to_rgb,
      .lookup_float32 = lookup_plane<float>,
      .lookup_float16 = lookup_plane<std::uint16_t>,
      .lookup_rgb_float32 = lookup_rgb<float>,
      .lookup_rgb_float16 = lookup_rgb<std::uint16_t>,
      .blend_float32 = blend_float32,
      .blend_float16 = blend_float16,
      .linear_row_float32 = linear_row_gathered<float>,
      .linear_row_int16 = linear_row_gathered<std::int16_t>,
  };
  static const Kernels named = [] {
    Kernels kernels = kKernels;
    kernels.name = hwy::TargetName(HWY_TARGET);
    kernels.pixels = simd_pixel_kernels(HWY_TARGET);
    return kernels;
  }();
  return &named;
}
#endif

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace feedline::transform {
namespace {

HWY_EXPORT(target_kernels);

}  // namespace

std::span<const Kernels* const> simd_kernels() {
  static const auto kernels = base::kernels_of_targets<Kernels>(HWY_DISPATCH_TABLE(target_kernels));
  return kernels;
}

}  // namespace feedline::transform
#endif  // HWY_ONCE
