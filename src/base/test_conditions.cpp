// SPDX-License-Identifier: Apache-2.0
#include "base/test_conditions.h"

namespace feedline::base {

TestConditions& test_conditions() {
  static TestConditions conditions;
  return conditions;
}

}  // namespace feedline::base
