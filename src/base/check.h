// SPDX-License-Identifier: Apache-2.0
#pragma once

// FEEDLINE_CHECK(condition): a promise of ours, always on. When broken the process says so on stderr and aborts:
// going on would hand out wrong data. Never for input that a user or a file can get wrong; that is a Result.

namespace feedline::base {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define FEEDLINE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::feedline::base::check_failed(#condition, __FILE__, __LINE__))
