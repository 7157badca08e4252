// SPDX-License-Identifier: Apache-2.0

// Compiles the kernels once per instruction set, and lists the kernels that this machine supports.

#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/baseline/baseline_simd_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "decode/jpeg/baseline/baseline_idct-inl.h"
#include "decode/jpeg/baseline/baseline_pixels-inl.h"
#include "decode/jpeg/baseline/baseline_reduced_dct-inl.h"
#include "decode/jpeg/baseline/baseline_turns.h"
#include "decode/jpeg/progressive/progressive_entropy.h"
#include "decode/jpeg/restart_scan-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace feedline::decode::baseline::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const Kernels* target_kernels() { return nullptr; }  // uses the plain kernels
#else
// This code is not vectorized, but benefits from newer instruction sets, which can shift by any register.
template <Blocks kBlocks>
inline void alone(EntropyRun& run) {
  run_alone<kGroup, kBlocks>(run);
}

template <Blocks kFirst, Blocks kSecond>
inline int in_turn(EntropyRun& first, EntropyRun& second) {
  return run_both<kGroup, kFirst, kSecond>(first, second);
}

inline int decode_low_mcus(const McuPlan& plan, int first, int end, EntropyState& state, std::int16_t* coefficients) {
  return decode_low<kGroup>(plan, first, end, state, coefficients);
}

template <bool kWanted>
inline void first_of_band(progressive::BandRun& run) {
  progressive::first_of_band<kGroup, kWanted>(run);
}

template <bool kWanted>
inline void refine_band(progressive::BandRun& run) {
  progressive::refine_band<kGroup, kWanted>(run);
}

inline void first_of_dc(progressive::DcRun& run) { progressive::first_of_dc<kGroup>(run); }
inline void refine_dc(progressive::DcRun& run) { progressive::refine_dc<kGroup>(run); }

const Kernels* target_kernels() {
  static const Kernels kernels{
      .name = hwy::TargetName(HWY_TARGET),
      .group = kGroup,
      .alone = {alone<Blocks::kWanted>, alone<Blocks::kSkipped>, alone<Blocks::kIgnored>},
      .in_turn = {{{in_turn<Blocks::kWanted, Blocks::kWanted>, in_turn<Blocks::kWanted, Blocks::kSkipped>},
                   {in_turn<Blocks::kSkipped, Blocks::kWanted>, in_turn<Blocks::kSkipped, Blocks::kSkipped>}}},
      .decode_low_mcus = decode_low_mcus,
      .inverse_dct = {inverse_dct, reduced_dct<1>, reduced_dct<2>, reduced_dct<3>},
      .upsample_across = upsample_across,
      .upsample_both = upsample_both,
      .ycc_to_rgb = ycc_to_rgb,
      .pass_restarts = pass_restarts,
      .progressive = {.first = {first_of_band<false>, first_of_band<true>},
                      .refine = {refine_band<false>, refine_band<true>},
                      .first_dc = first_of_dc,
                      .refine_dc = refine_dc}};
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

// Initialized when the library is loaded. If another thread were initializing the list during fork(), the child would
// inherit an unfinished initialization and wait forever.
[[maybe_unused]] const auto& made_at_load = all_kernels();

const Kernels& best_kernels() { return *all_kernels().front(); }

}  // namespace feedline::decode::baseline
#endif  // HWY_ONCE
