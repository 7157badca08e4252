// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the compiled versions of kernels that Highway compiles once per instruction set. Include this header before any
// of Highway's headers.

// Scalable vectors cannot be array elements; machines with scalable vectors also support fixed-size ones.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace feedline::base {

// Calls the functions in `table`, a HWY_DISPATCH_TABLE, that this machine supports, best instruction set first, and
// returns the results that are not nullptr. Highway's SetSupportedTargetsForTest() is not used, because it would change
// dispatch for the whole process while another thread may be listing kernels.
template <typename Kernels, typename Table>
std::vector<const Kernels*> kernels_of_targets(const Table& table) {
  std::vector<const Kernels*> found;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    const std::size_t index = std::size(table) == 1 ? 0 : chosen.GetIndex();
    if (const Kernels* kernels = table[index]()) found.push_back(kernels);
  }
  return found;
}

// Returns `simd` followed by the scalar kernels, which run on every machine.
template <typename List, typename Kernels>
std::vector<const Kernels*> with_plain(const List& simd, const Kernels& plain) {
  std::vector<const Kernels*> all(simd.begin(), simd.end());
  all.push_back(&plain);
  return all;
}

}  // namespace feedline::base
