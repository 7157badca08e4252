// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace feedline::base {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "feedline: internal error: %s does not hold (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace feedline::base
