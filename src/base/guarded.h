// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where exceptions end: at the public border, and in every thread of ours.

#include <exception>

#include "feedline/error.h"

namespace feedline::base {

// What an exception means to the user. std::bad_alloc: kStorage with ENOMEM, as for every other memory that the system
// does not give; all else, CheckFailed among it: kInternal. nullptr: an exception of no known type. Never throws.
Error error_of(const std::exception* exception) noexcept;

// Runs `body`, which returns a Result: what it throws comes out as an error.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return std::unexpected(error_of(&e));
  }
}

}  // namespace feedline::base
