// SPDX-License-Identifier: Apache-2.0

// Compiles the kernels once per instruction set, and lists those this machine can run.

#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/baseline_simd_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "decode/baseline_entropy.h"
#include "decode/baseline_idct-inl.h"
#include "decode/baseline_pixels-inl.h"
#include "decode/restart_scan-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace feedline::decode::baseline::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const Kernels* target_kernels() { return nullptr; }  // the plain kernels serve
#else
// Not vector code, but the shifts of newer instruction sets take any register.
inline int decode(const McuPlan& plan, int first, int end, EntropyState& state, std::int16_t* coefficients) {
  return decode_mcus<kGroup>(plan, first, end, state, coefficients);
}

inline int skip(const McuPlan& plan, int first, int end, EntropyState& state) {
  return skip_mcus(plan, first, end, state);
}

const Kernels* target_kernels() {
  static const Kernels kernels{.name = hwy::TargetName(HWY_TARGET),
                               .group = kGroup,
                               .decode_mcus = decode,
                               .skip_mcus = skip,
                               .inverse_dct = inverse_dct,
                               .upsample_across = upsample_across,
                               .upsample_both = upsample_both,
                               .ycc_to_rgb = ycc_to_rgb,
                               .pass_restarts = pass_restarts};
  return &kernels;
}
#endif

}  // namespace feedline::decode::baseline::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace feedline::decode::baseline {
namespace {

HWY_EXPORT(target_kernels);

}  // namespace

std::span<const Kernels* const> simd_kernels() {
  static const auto kernels = base::kernels_of_targets<Kernels>(HWY_DISPATCH_TABLE(target_kernels));
  return kernels;
}

const std::vector<const Kernels*>& all_kernels() {
  static const auto kernels = base::with_plain(simd_kernels(), scalar_kernels());
  return kernels;
}

const Kernels& best_kernels() { return *all_kernels().front(); }

}  // namespace feedline::decode::baseline
#endif  // HWY_ONCE
