// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "feedline/error.h"
#include "transform/kernels/kernels.h"

namespace feedline::transform {

// The kernels of the process: the best, or the choice of force_simd_variant(). Thread-safe.
const Kernels& active_kernels();

// Major version of the Pillow whose pixels are made. Thread-safe.
int followed_pillow();

// All that this machine can run, best first, the scalar ones last.
const std::vector<const Kernels*>& all_kernels();

// Names of the instruction sets whose kernels this machine can run, best first ("AVX3_ZEN4", "AVX2", ...), and
// "scalar", the plain C++ kernels that the others are tested against.
std::vector<std::string> simd_variants();
// Forces one of simd_variants() for the whole process, "" for the best. Not while a pipeline runs. kConfig: unknown.
Result<void> force_simd_variant(const std::string& name);
std::string active_simd_variant();

// Resizes as that major version of Pillow does, 10 to 13 (12: as 12.2 and later). Since 13 it chooses the order of the
// two passes by the sizes, which moves some pixels by one level. For the whole process; 13 by default. Not while a
// pipeline runs. kConfig: a version whose pixels are not known.
Result<void> follow_pillow(int major);

}  // namespace feedline::transform
