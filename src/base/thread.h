// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "feedline/error.h"

namespace feedline::base {

// A named thread that blocks every signal, so that handlers run in the threads of the host program, and that is
// joined by its destructor, unless it was let go. The only place that makes threads: one whose body throws would end
// the process, which is somebody's training, so none is made without a word on what happens then.
class Thread {
 public:
  using Body = std::function<void()>;
  // Called by the thread, as its last act, when its body has thrown: see error_of(). Whoever waits for what the body
  // would have done has to learn of it here. Must not throw.
  using Failed = std::function<void(Error)>;

  // name: at most 15 characters are shown by the kernel. kStorage with errno when the system gives no thread.
  static Result<Thread> start(const std::string& name, Body body, Failed failed);
  ~Thread();
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;

  // Nobody waits for its end any more. Requires: what it still does touches nothing that goes before the process does.
  void let_go();

 private:
  explicit Thread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

}  // namespace feedline::base
