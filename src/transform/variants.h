// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "transform/kernels.h"

namespace feedline::transform {

// The kernels in force for the process: the best, or those force_simd_variant() (chain.h) chose. Thread-safe.
const Kernels& active_kernels();

// Major version of the Pillow whose pixels are made. Thread-safe.
int followed_pillow();

// All that this machine can run, best first, the scalar ones last.
const std::vector<const Kernels*>& all_kernels();

}  // namespace feedline::transform
