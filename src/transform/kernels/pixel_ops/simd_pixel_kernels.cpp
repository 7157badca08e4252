// SPDX-License-Identifier: Apache-2.0

// Compiles the -inl.h files of this folder once per instruction set.

#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/pixel_ops/simd_pixel_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "transform/kernels/pixel_ops/blur_kernels-inl.h"
#include "transform/kernels/pixel_ops/enhance_kernels-inl.h"
#include "transform/kernels/pixel_ops/noise_kernels-inl.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pixel_ops/table_kernels-inl.h"
#include "transform/kernels/pixel_ops/warp_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const PixelKernels* target_pixel_kernels() { return nullptr; }  // the scalar kernels are used
#else
// Targets without double-precision vectors use the scalar kernels.
const PixelKernels* target_pixel_kernels() {
  static const PixelKernels kernels = [] {
    PixelKernels k = kScalarPixelKernels;
    k.look_up = look_up;
    k.look_up_rgb = look_up_rgb;
    k.fold = fold;
    k.widen_rgb = widen_rgb;
    k.luma = luma;
    k.sum_luma = sum_luma;
    k.blend = blend;
    k.saturate = saturate;
    k.shift_hue = shift_hue;
    k.smooth = smooth;
    k.to_float = to_float;
    k.blur_row = blur_row;
    k.blur_rows = blur_rows;
    k.normals = normals_of;
    k.weigh = weigh;
    k.add_weighed = add_weighed;
    k.truncate = truncate;
    k.grid = grid;
    k.grid_cubic = grid_cubic;
#if HWY_HAVE_FLOAT64
    k.affine_points = affine_points;
    k.perspective_points = perspective_points;
    k.bilinear = bilinear;
    k.bicubic = bicubic;
#endif
    return k;
  }();
  return &kernels;
}
#endif

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace feedline::transform {
namespace {

HWY_EXPORT(target_pixel_kernels);

}  // namespace

const PixelKernels* simd_pixel_kernels(std::int64_t target) {
  const auto& table = HWY_DISPATCH_TABLE(target_pixel_kernels);
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return table[std::size(table) == 1 ? 0 : chosen.GetIndex()]();
}

}  // namespace feedline::transform
#endif  // HWY_ONCE
