// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "feedline/error.h"
#include "transform/kernels/kernels.h"

namespace feedline::transform {

// The active kernels of the process: the best, or those selected by force_simd_variant(). Thread-safe.
const Kernels& active_kernels();

// The major version of Pillow that pixels follow. Thread-safe.
int followed_pillow();

// All kernels that this machine supports, best first and scalar last.
const std::vector<const Kernels*>& all_kernels();

// Names of the instruction sets with kernels that this machine supports, best first ("AVX3_ZEN4", "AVX2", ...), and
// "scalar", the C++ kernels that the others are tested against.
std::vector<std::string> simd_variants();
// Selects one of simd_variants() for the whole process, or the best for "". Must not be called while a pipeline runs.
// kConfig: unknown name.
Result<void> force_simd_variant(const std::string& name);
std::string active_simd_variant();

// Resizes like the given major version of Pillow, 10 to 13 (12: as 12.2 and later), in the whole process; 13 by
// default. Since 13 the order of the two passes depends on the sizes, which changes some pixels by one level. Must not
// be called while a pipeline runs. kConfig: unknown version.
Result<void> follow_pillow(int major);

}  // namespace feedline::transform
