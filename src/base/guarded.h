// SPDX-License-Identifier: Apache-2.0
#pragma once

// The places where exceptions are caught: the public interface, and each of our threads.

#include <exception>

#include "feedline/error.h"

namespace feedline::base {

// Converts an exception to an error. std::bad_alloc: kStorage with ENOMEM, like any other allocation failure of the
// system; all others, including CheckFailed: kInternal. nullptr: an exception of unknown type. Never throws.
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
