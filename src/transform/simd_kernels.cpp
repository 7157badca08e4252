// SPDX-License-Identifier: Apache-2.0

// Compiles the -inl.h files once per instruction set, and lists those this machine can run.

// Vectors whose size is known only at run time cannot be elements of arrays; such machines have fixed-size ones too.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/simd_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "transform/emit_kernels-inl.h"
#include "transform/horizontal_kernels-inl.h"
#include "transform/vertical_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const Kernels* target_kernels() { return nullptr; }  // the plain kernels serve
#else
const Kernels* target_kernels() {
  static constexpr Kernels kKernels = {
      .name = "",
      .plan_row = plan_row,
      .horizontal = horizontal,
      .vertical = vertical,
      .split = split,
      .lookup_float32 = lookup_plane<float>,
      .lookup_float16 = lookup_plane<std::uint16_t>,
      .lookup_rgb_float32 = lookup_rgb<float>,
      .lookup_rgb_float16 = lookup_rgb<std::uint16_t>,
  };
  static const Kernels named = [] {
    Kernels kernels = kKernels;
    kernels.name = hwy::TargetName(HWY_TARGET);
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

// Highway's table holds every target's function. Its own way to visit them, SetSupportedTargetsForTest(), changes what
// the whole process dispatches to, while another thread may be listing the kernels of another folder.
std::vector<const Kernels*> collect() {
  const auto& table = HWY_DISPATCH_TABLE(target_kernels);
  std::vector<const Kernels*> found;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    const std::size_t index = std::size(table) == 1 ? 0 : chosen.GetIndex();
    if (const Kernels* kernels = table[index]()) found.push_back(kernels);
  }
  return found;
}

}  // namespace

std::span<const Kernels* const> simd_kernels() {
  static const std::vector<const Kernels*> kernels = collect();
  return kernels;
}

}  // namespace feedline::transform
#endif  // HWY_ONCE
