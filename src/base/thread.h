// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "feedline/error.h"

namespace feedline::base {

// A named thread that blocks every signal, so that handlers run in the threads of the host program, and that is
// joined by its destructor.
class Thread {
 public:
  // name: at most 15 characters are shown by the kernel. kStorage with errno when the system gives no thread.
  static Result<Thread> start(const std::string& name, std::function<void()> body);
  ~Thread();
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;

 private:
  explicit Thread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

}  // namespace feedline::base
