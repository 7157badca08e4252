// SPDX-License-Identifier: Apache-2.0
#pragma once

// FEEDLINE_CHECK(condition) checks an internal invariant and is always enabled. A violation throws CheckFailed, the
// only exception that Feedline throws. Each stage thread and each public function converts CheckFailed to an `internal`
// Error, because continuing could deliver wrong data. Invalid input from users or files must be reported as a Result
// instead.

#include <stdexcept>

namespace feedline::base {

class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace feedline::base

#define FEEDLINE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::feedline::base::check_failed(#condition, __FILE__, __LINE__))
