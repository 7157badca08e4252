// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scales the number of random test rounds. Builds without a sanitizer check the results in all rounds. Sanitizer builds
// detect invalid accesses and arithmetic; they are ten times slower and find such errors in the first rounds on each
// code path. Tests of boundary shapes run all rounds in every build.

#include <algorithm>

namespace feedline::base {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// Returns `all`, or `all` divided by `fewer` under a sanitizer.
constexpr int rounds(int all, int fewer = 8) { return kIsSanitized ? std::max(1, all / fewer) : all; }

// Returns the loop increment: 1 to visit every number, or `fewer` under a sanitizer.
constexpr int stride(int fewer) { return kIsSanitized ? fewer : 1; }

}  // namespace feedline::base
