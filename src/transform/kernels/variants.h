// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "feedline/error.h"
#include "transform/kernels/kernels.h"

namespace feedline::transform {

// Returns the active kernels of the process: the best ones, or those that force_simd_variant() selected. Thread-safe.
const Kernels& active_kernels();

// Returns the major version of Pillow whose pixels are reproduced. Thread-safe.
int followed_pillow();

// Returns all kernels that this machine supports, best first; the scalar kernels are last.
const std::vector<const Kernels*>& all_kernels();

// Returns the names of the instruction sets that have kernels and that this machine supports, best first ("AVX3_ZEN4",
// "AVX2", ...), and "scalar" for the C++ kernels with which the others are compared.
std::vector<std::string> simd_variants();
// Selects one of simd_variants() for the whole process; "" selects the best one. Must not be called while a pipeline is
// running. kConfig: the name is unknown.
Result<void> force_simd_variant(const std::string& name);
std::string active_simd_variant();

// Selects the major version of Pillow (10 to 13) whose resize is reproduced in the whole process; the default is 13,
// and 12 means 12.2 and later. Since Pillow 13, the order of the two passes depends on the sizes, which changes some
// pixels by one level. Must not be called while a pipeline is running. kConfig: the version is unknown.
Result<void> follow_pillow(int major);

}  // namespace feedline::transform
