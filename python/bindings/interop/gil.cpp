// SPDX-License-Identifier: Apache-2.0
#include "interop/gil.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace nb = nanobind;

// A daemon thread may still be in next() when the interpreter exits. Up to Python 3.13 the interpreter ends such a
// thread with pthread_exit() when it acquires the GIL, which unwinds the stack like an exception, and C++ aborts the
// process when that reaches a noexcept function: "terminate called without an active exception". Python 3.14 makes the
// thread hang instead. We do the same in every version: the exit handler announces the exit, then waits for threads
// that have already passed the check; after that no thread acquires the GIL with our C++ on its stack.

namespace feedline::python {
namespace {

std::atomic<bool> exiting = false;
std::atomic<int> past_looking = 0;  // threads that acquire the GIL or run Python code from C++
std::thread::id exiting_thread;

void begin_exit() {
  exiting_thread = std::this_thread::get_id();
  exiting = true;
  PyThreadState* state = PyEval_SaveThread();
  while (past_looking > 0) std::this_thread::yield();
  PyEval_RestoreThread(state);
}

// Registers the caller, and returns whether it may continue. Both variables are sequentially consistent: begin_exit()
// sees every thread that does not see the exit.
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

TakingGil::TakingGil() : is_taken_(nb::is_alive() && may_go_on()) {
  if (is_taken_) state_ = PyGILState_Ensure();
}

TakingGil::~TakingGil() {
  if (!is_taken_) return;
  PyGILState_Release(state_);
  --past_looking;
}

namespace {

// Python's state for a thread that it did not create, until the thread ends.
class ThreadState {
 public:
  // Requires: may_go_on() returned true, and the GIL is not held.
  void keep() {
    if (state_ != nullptr || PyGILState_GetThisThreadState() != nullptr) return;
    outer_ = PyGILState_Ensure();
    state_ = PyEval_SaveThread();
  }
  ~ThreadState() {
    if (state_ == nullptr || !nb::is_alive() || !may_go_on()) return;
    PyEval_RestoreThread(state_);
    PyGILState_Release(outer_);
    --past_looking;
  }

 private:
  PyThreadState* state_ = nullptr;
  PyGILState_STATE outer_{};
};

thread_local ThreadState thread_state;

bool enter(bool keeps_state) {
  if (!nb::is_alive() || !may_go_on()) return false;
  if (keeps_state) thread_state.keep();
  return true;
}

// Up to Python 3.13 a thread that returns to a finalised interpreter is ended by pthread_exit(), which unwinds the
// stack. Nothing here has a destructor, and the C++ frames above are not reached.
__attribute__((no_sanitize("undefined"))) PyObject* call_or_hang(PyObject* callable, PyObject* arguments) {
  try {
    return PyObject_CallObject(callable, arguments);
  } catch (const abi::__forced_unwind&) {
    hang();
  }
}

// Objects released by threads without the GIL. Never destroyed: threads may outlive it.
struct Left {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  std::atomic<bool> has_any = false;
};
Left& left() {
  static auto* const all = new Left;
  return *all;
}

int release_pending(void* /*nothing*/) {
  release_left();
  return 0;
}

void leave(PyObject* object) {
  if (!nb::is_alive()) return;
  bool is_first = false;
  {
    const std::lock_guard lock(left().mutex);
    is_first = left().objects.empty();
    left().objects.push_back(object);
    left().has_any = true;
  }
  // if scheduling fails, the next function call releases the objects
  if (is_first) static_cast<void>(Py_AddPendingCall(&release_pending, nullptr));
}

}  // namespace

EnteringPython::EnteringPython(bool keeps_state) : is_taken_(enter(keeps_state)) {
  if (is_taken_) state_ = PyGILState_Ensure();
}

EnteringPython::~EnteringPython() {
  if (!is_taken_) return;
  PyGILState_Release(state_);
  --past_looking;
}

PyObject* EnteringPython::run(PyObject* callable, PyObject* arguments) {
  --past_looking;
  PyObject* const made = call_or_hang(callable, arguments);
  if (may_go_on()) return made;
  PyEval_SaveThread();
  hang();
}

std::shared_ptr<void> held_by_anyone(nb::object object) {
  return {object.release().ptr(), [](void* held) { leave(static_cast<PyObject*>(held)); }};
}

nb::handle object_of(const std::shared_ptr<void>& held) { return static_cast<PyObject*>(held.get()); }

void release_left() {
  if (!left().has_any) return;
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(left().mutex);
    objects.swap(left().objects);
    left().has_any = false;
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

void prepare_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&begin_exit));
  // a forked child has none of the registered threads and might inherit a locked mutex for the released objects
  pthread_atfork([] { left().mutex.lock(); }, [] { left().mutex.unlock(); },
                 [] {
                   left().mutex.unlock();
                   past_looking = 0;
                 });
}

}  // namespace feedline::python
