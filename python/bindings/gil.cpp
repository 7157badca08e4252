// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace nb = nanobind;

// A daemon thread may still be in next() when the interpreter exits. Up to Python 3.13 the interpreter ends such a
// thread with pthread_exit() where it asks for the GIL, which unwinds the stack as an exception would, and C++ aborts
// the process when that meets a noexcept function: "terminate called without an active exception". Python 3.14 lets
// the thread hang instead. So do we, on every version: the exit handler says that the end has come, then waits for
// threads that are past looking; from there on no thread asks for the GIL with our C++ on its stack.

namespace feedline::python {
namespace {

std::atomic<bool> exiting = false;
std::atomic<int> past_looking = 0;  // threads that ask for the GIL or run Python code from C++
std::thread::id exiting_thread;

void begin_exit() {
  exiting_thread = std::this_thread::get_id();
  exiting = true;
  PyThreadState* state = PyEval_SaveThread();
  while (past_looking > 0) std::this_thread::yield();
  PyEval_RestoreThread(state);
}

// Counts the caller in, and tells whether it may go on. Both variables are sequentially consistent: a thread that
// sees no exit is seen by begin_exit().
bool may_go_on() {
  ++past_looking;
  if (!exiting || std::this_thread::get_id() == exiting_thread) return true;
  --past_looking;
  return false;
}

[[noreturn]] void hang() {
  while (true) pause();
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  if (!may_go_on()) hang();
  PyEval_RestoreThread(state_);
  --past_looking;
}

CallingPython::CallingPython() {
  if (may_go_on()) return;
  PyEval_SaveThread();
  hang();
}

CallingPython::~CallingPython() { --past_looking; }

void prepare_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&begin_exit));
  // a child of fork() has none of the threads that were counted
  pthread_atfork(nullptr, nullptr, [] { past_looking = 0; });
}

}  // namespace feedline::python
