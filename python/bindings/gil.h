// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace feedline::python {

// Gives the GIL away for its lifetime. While the interpreter exits it does not come back in any thread but the one
// that exits. Requires: the GIL is held.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

template <typename F>
auto without_gil(F call) {
  const WithoutGil released;
  return call();
}

// Around Python code that C++ calls, such as the import of NumPy: the interpreter's exit waits for it. Requires: the
// GIL is held.
class CallingPython {
 public:
  CallingPython();
  ~CallingPython();
  CallingPython(const CallingPython&) = delete;
  CallingPython& operator=(const CallingPython&) = delete;
};

// Makes the interpreter's exit safe for threads that are inside one of these. Once, when the module is imported.
void prepare_exit();

}  // namespace feedline::python
