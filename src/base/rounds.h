// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: how often what is drawn is drawn again. That results are right is proved by builds without a sanitizer.
// One looks for accesses and arithmetic that are wrong, takes ten times as long for each, and finds them in the first
// rounds that take the same way through the code. Tests of the shapes at the edges go through all of them in any build.

#include <algorithm>

namespace feedline::base {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// `all`, and under a sanitizer one in `fewer` of them.
constexpr int rounds(int all, int fewer = 8) { return kIsSanitized ? std::max(1, all / fewer) : all; }

// Every number below an end, and under a sanitizer one in `fewer`: what a loop adds each time.
constexpr int stride(int fewer) { return kIsSanitized ? fewer : 1; }

}  // namespace feedline::base
