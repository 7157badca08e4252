// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

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

// The same for a thread of the engine's that calls a function of the user's: what Python keeps of the thread, such as
// threading.local, stays from call to call. The function itself is called by run(), for which the interpreter's exit
// does not wait, as it may never return: a thread that would come back to an interpreter that is gone hangs in place.
class EnteringPython {
 public:
  EnteringPython();
  ~EnteringPython();
  EnteringPython(const EnteringPython&) = delete;
  EnteringPython& operator=(const EnteringPython&) = delete;
  explicit operator bool() const { return is_taken_; }

  // nullptr: it raised, and Python's error is set. Requires: bool(*this).
  static PyObject* run(PyObject* callable, PyObject* arguments);

 private:
  const bool is_taken_;
  PyGILState_STATE state_{};
};

// A Python object that C++ holds and any thread may let go of, under whatever lock: who has not the GIL leaves it to
// the next that has. Requires: the GIL is held.
std::shared_ptr<void> held_by_anyone(nanobind::object object);
nanobind::handle object_of(const std::shared_ptr<void>& held);
// Lets go of what was left. Requires: the GIL is held.
void release_left();

// Makes the interpreter's exit safe for threads that are inside one of these. Once, when the module is imported.
void prepare_exit();

}  // namespace feedline::python
