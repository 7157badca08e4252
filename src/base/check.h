// SPDX-License-Identifier: Apache-2.0
#pragma once

// FEEDLINE_CHECK(condition): a promise of ours, always on. A broken one throws CheckFailed, the only thing that
// Feedline throws; each stage thread and each public entry turns it into an `internal` Error, because going on would
// hand out wrong data. Never for input that a user or a file can get wrong; that is a Result.

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
