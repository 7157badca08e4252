// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace feedline::python {

// Releases the GIL for its lifetime. While the interpreter exits, only the exiting thread acquires it again. Requires:
// the GIL is held.
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

// Surrounds Python code called from C++, such as the import of NumPy: the interpreter's exit waits for it. Requires:
// the GIL is held.
class CallingPython {
 public:
  CallingPython();
  ~CallingPython();
  CallingPython(const CallingPython&) = delete;
  CallingPython& operator=(const CallingPython&) = delete;
};

// Acquires the GIL on any thread, which may already hold it, to access Python objects held by C++. False if the
// interpreter is exiting or has exited; the objects must then not be touched.
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

// The same for an engine thread that calls a user's function: Python's thread state, such as threading.local, persists
// between calls if `keeps_state`. A thread that keeps a state waits for the GIL when it ends, so a thread with the GIL
// must not join it. run() makes the call itself; the interpreter's exit does not wait for it, as it may never return: a
// thread that would return to a finalised interpreter hangs instead.
class EnteringPython {
 public:
  explicit EnteringPython(bool keeps_state = true);
  ~EnteringPython();
  EnteringPython(const EnteringPython&) = delete;
  EnteringPython& operator=(const EnteringPython&) = delete;
  explicit operator bool() const { return is_taken_; }

  // nullptr: the call raised an exception, and Python's error is set. Requires: bool(*this).
  static PyObject* run(PyObject* callable, PyObject* arguments);

 private:
  const bool is_taken_;
  PyGILState_STATE state_{};
};

// A Python object held by C++ that any thread may release, under any lock: a thread without the GIL leaves it to the
// next thread that has it. Requires: the GIL is held.
std::shared_ptr<void> held_by_anyone(nanobind::object object);
nanobind::handle object_of(const std::shared_ptr<void>& held);
// Releases the objects left by other threads. Requires: the GIL is held.
void release_left();

// Makes the interpreter's exit safe for threads inside these classes. Call once, when the module is imported.
void prepare_exit();

}  // namespace feedline::python
