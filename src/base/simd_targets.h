// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the kernels that Highway compiles once per instruction set. Include it before any of Highway's headers.

// Scalable vectors cannot be array elements; machines that have them support fixed-size ones too.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace feedline::base {

// The results of the functions in `table`, a HWY_DISPATCH_TABLE, for this machine's instruction sets, best first,
// without nullptr results. Highway's SetSupportedTargetsForTest() would change dispatch for the whole process, while
// another thread may be listing the kernels of another folder.
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

// The list followed by the scalar kernels, which run on every machine.
template <typename List, typename Kernels>
std::vector<const Kernels*> with_plain(const List& simd, const Kernels& plain) {
  std::vector<const Kernels*> all(simd.begin(), simd.end());
  all.push_back(&plain);
  return all;
}

}  // namespace feedline::base
