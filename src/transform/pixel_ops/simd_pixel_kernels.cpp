// SPDX-License-Identifier: Apache-2.0

// Compiles the -inl.h files of this folder once per instruction set.

#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/pixel_ops/simd_pixel_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "transform/pixel_ops/pixel_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const PixelKernels* target_pixel_kernels() { return nullptr; }  // the plain kernels serve
#else
const PixelKernels* target_pixel_kernels() { return &kScalarPixelKernels; }
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
