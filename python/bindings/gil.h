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

// Takes the GIL in any thread, which may have it already, for Python objects that C++ holds. False: the interpreter
// exits or has ended, and objects are left alone.
class TakingGil {
 public:
  TakingGil();
  ~TakingGil();
  TakingGil(const TakingGil&) = delete;
  TakingGil& operator=(const TakingGil&) = delete;
  explicit operator bool() const { return is_taken_; }

 private:
  const bool is_taken_;
  PyGILState_STATE state_{};
};

// Makes the interpreter's exit safe for threads that are inside one of these. Once, when the module is imported.
void prepare_exit();

}  // namespace feedline::python
