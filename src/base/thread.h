// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "feedline/error.h"

namespace feedline::base {

// A named thread that blocks all signals, so that signal handlers run on the host program's threads. The destructor
// joins the thread unless it was detached. All threads are created with this class, because an exception in a thread
// body would terminate the training process: every thread must specify how to handle one.
class Thread {
 public:
  using Body = std::function<void()>;
  // Called on the thread, as its last action, if its body has thrown an exception (see error_of()). The callback must
  // notify all threads that wait for the body's result. Must not throw.
  using Failed = std::function<void(Error)>;

  // name: the kernel shows at most 15 characters. Returns kStorage with errno if the system cannot create a thread.
  static Result<Thread> start(const std::string& name, Body body, Failed failed);
  ~Thread();
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;

  // Detaches the thread. Requires: the thread uses nothing that is destroyed before the process exits.
  void let_go();

 private:
  explicit Thread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

}  // namespace feedline::base
