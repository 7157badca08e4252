// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace feedline::pipeline {

// Tracks one thread's calls of a SampleFunction. A call may never return, but the loader must still close: it then
// abandons the thread, which never touches loader memory again, as that may be freed, and ends with the process.
class FunctionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Called by the thread around a call. enter(): returns false if no further call may start. leave(): does not return
  // in an abandoned thread.
  bool enter();
  void leave(std::uint64_t run_ns, std::uint64_t waited_ns);

  // Called when the loader closes. close(): prevents further calls. give_up(): waits until the deadline for the current
  // call; returns true if it did not return and its thread is abandoned.
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
  std::atomic<std::uint64_t> calls_{0}, run_ns_{0}, waited_ns_{0};  // relaxed: no ordering needed
};

}  // namespace feedline::pipeline
