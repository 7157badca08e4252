// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace feedline::pipeline {

// What others know of one thread's calls of a SampleFunction. Such a call may never return, and a loader must end all
// the same: the thread is given up then. It never comes back to memory of the loader's, which may be gone, and ends
// with the process.
class FunctionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // By the thread, around a call. enter(): false where no further call may begin. leave(): does not return in a thread
  // that was given up.
  bool enter();
  void leave(std::uint64_t run_ns, std::uint64_t waited_ns);

  // By whoever ends the loader. close(): no further call begins. give_up(): waits until then for the call that runs;
  // true: it has not returned, and its thread is given up.
  void close();
  bool give_up(Clock::time_point until);

  // Any thread.
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  std::uint64_t run_ns() const { return run_ns_.load(std::memory_order_relaxed); }
  std::uint64_t waited_ns() const { return waited_ns_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  bool is_inside_ = false;
  bool is_closed_ = false;
  bool is_given_up_ = false;
  std::atomic<std::uint64_t> calls_{0}, run_ns_{0}, waited_ns_{0};  // relaxed: they order nothing
};

}  // namespace feedline::pipeline
