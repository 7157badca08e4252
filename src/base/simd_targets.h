// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels that Highway compiles once per instruction set, as a list. Comes before any of Highway's headers.

// Vectors whose size is known only at run time cannot be elements of arrays; such machines have fixed-size ones too.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace feedline::base {

// What the functions of `table`, a HWY_DISPATCH_TABLE, give on the instruction sets of this machine, best first; those
// that give nullptr are left out. Highway's own way to visit them, SetSupportedTargetsForTest(), changes what the whole
// process dispatches to, while another thread may be listing the kernels of another folder.
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

// The list with the plain kernels, which every machine has, behind it.
template <typename List, typename Kernels>
std::vector<const Kernels*> with_plain(const List& simd, const Kernels& plain) {
  std::vector<const Kernels*> all(simd.begin(), simd.end());
  all.push_back(&plain);
  return all;
}

}  // namespace feedline::base
