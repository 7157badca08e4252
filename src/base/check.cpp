// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <string>

namespace feedline::base {

void check_failed(const char* condition, const char* file, int line) {
  throw CheckFailed(std::string(condition) + " does not hold (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace feedline::base
