// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls of Python libraries by the engine's threads.

#include <nanobind/nanobind.h>

#include <cerrno>

#include "feedline/error.h"
#include "interop/gil.h"

namespace feedline::python {

std::unexpected<Error> interpreter_exits();
// kStorage with the message of the exception. An interrupt of the main thread is raised again when the engine returns.
std::unexpected<Error> storage_error_of(nanobind::python_error& error);

// Calls a function of a library, which may block, from any thread. function, arguments: called with the GIL; take:
// converts the result. keeps_state: of EnteringPython.
template <typename Function, typename Arguments, typename Take>
auto call_library(const Function& function, const Arguments& arguments, const Take& take, bool keeps_state = true)
    -> Result<decltype(take(nanobind::handle()))> {
  const EnteringPython entering(keeps_state);
  if (!entering) return interpreter_exits();
  release_left();
  try {
    const nanobind::object called = function();
    const nanobind::object given = arguments();
    const auto made = nanobind::steal(EnteringPython::run(called.ptr(), given.ptr()));
    if (!made.is_valid()) throw nanobind::python_error();
    return take(nanobind::handle(made));
  } catch (nanobind::python_error& error) {
    return storage_error_of(error);
  } catch (const nanobind::cast_error&) {
    return storage_error("the library returned an invalid result", EREMOTEIO);
  }
}

}  // namespace feedline::python
