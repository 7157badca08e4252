// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catches exceptions at the public interface and in each of Feedline's threads.

#include <exception>

#include "feedline/error.h"

namespace feedline::base {

// Converts an exception to an error. std::bad_alloc becomes kStorage with ENOMEM, like any other failed allocation; all
// others, including CheckFailed, become kInternal. nullptr means an exception of unknown type. Never throws.
Error error_of(const std::exception* exception) noexcept;

// Runs `body`, which returns a Result, and converts exceptions to errors.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return std::unexpected(error_of(&e));
  }
}

}  // namespace feedline::base
