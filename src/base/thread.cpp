// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "base/guarded.h"

namespace feedline::base {
namespace {

// A forced unwind (pthread_exit) has no exception object, so the sanitizer would report a null reference here.
__attribute__((no_sanitize("undefined"))) void run(const Thread::Body& body, const Thread::Failed& failed) {
  try {
    body();
  } catch (const std::exception& e) {
    failed(error_of(&e));
  } catch (const abi::__forced_unwind&) {  // pthread_exit() of foreign code: the C library requires that it continues
    failed(error_of(nullptr));
    throw;
  } catch (...) {
    failed(error_of(nullptr));
  }
}

}  // namespace

Result<Thread> Thread::start(const std::string& name, Body body, Failed failed) {
  // threads inherit the creator's signal mask: block, start, restore
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int refused = 0;
  try {
    thread = std::thread([name, body = std::move(body), failed = std::move(failed)] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      run(body, failed);
    });
  } catch (const std::system_error& e) {
    refused = e.code().value();
  } catch (const std::bad_alloc&) {
    refused = ENOMEM;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (refused != 0) return storage_error("the system cannot create another thread (see ulimit -u, pids.max)", refused);
  return Thread(std::move(thread));
}

void Thread::let_go() { thread_.detach(); }

Thread::~Thread() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace feedline::base
