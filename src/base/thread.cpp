// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

namespace feedline::base {

Result<Thread> Thread::start(const std::string& name, std::function<void()> body) {
  // a thread inherits the mask of its maker: block, start, put back
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int failed = 0;
  try {
    thread = std::thread([name, body = std::move(body)] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      body();
    });
  } catch (const std::system_error& e) {
    failed = e.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) return storage_error("the system gives no further thread (see ulimit -u, pids.max)", failed);
  return Thread(std::move(thread));
}

Thread::~Thread() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace feedline::base
