// SPDX-License-Identifier: Apache-2.0
#include "interop/library_call.h"

#include <string>

#include "interop/text_caster.h"

namespace nb = nanobind;

namespace feedline::python {

std::unexpected<Error> interpreter_exits() {
  return std::unexpected(Error{ErrorCode::kCancelled, "the interpreter exits", {}, 0});
}

std::unexpected<Error> storage_error_of(nb::python_error& error) {
  const int number = error.matches(PyExc_FileNotFoundError)   ? ENOENT
                     : error.matches(PyExc_PermissionError)   ? EACCES
                     : error.matches(PyExc_IsADirectoryError) ? EISDIR
                                                              : EREMOTEIO;
  const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string words = nb::cast<std::string>(nb::str(error.value()));
  if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // last: the calls above would raise it here
  return storage_error(words.empty() ? type : type + ": " + words, number);
}

}  // namespace feedline::python
