// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts engine errors to Python exceptions; no other code does. The classes are defined in feedline/errors.py.
// Requires: the GIL is held.

#include <nanobind/nanobind.h>

#include <string_view>
#include <type_traits>
#include <utility>

#include "feedline/error.h"

namespace feedline::python {

// "config", "data", "storage", "stalled", "cancelled", "internal"
std::string_view name_of(ErrorCode code);

// Creates an instance of the exception class for `error` without raising it.
nanobind::object to_exception(const Error& error);

[[noreturn]] void raise(const Error& error);
[[noreturn]] void raise_config(std::string what);

template <typename T>
T unwrap(Result<T>&& result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace feedline::python
