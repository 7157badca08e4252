// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "feedline/error.h"

namespace feedline::consumer {

// Runs `body`, which returns a Result, at the public border: a broken promise of ours (base::CheckFailed) or a failed
// allocation comes out as an `internal` Error, not as an exception.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return internal_error(std::string("internal error: ") + e.what());
  }
}

}  // namespace feedline::consumer
