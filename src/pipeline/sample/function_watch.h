// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace feedline::pipeline {

// Tracks the calls to a SampleFunction on one thread. A call may never return, but the loader must still close. In that
// case, the loader abandons the thread, which ends with the process and never accesses the loader's memory again,
// because that memory may have been freed.
class FunctionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // The thread calls these functions around a call. enter(): returns false if no further call may start. leave(): does
  // not return if the thread was abandoned.
  bool enter();
  void leave(std::uint64_t run_ns, std::uint64_t waited_ns);

  // Called when the loader closes. close(): prevents further calls. give_up(): waits for the current call until the
  // deadline; returns true if the call did not return and its thread was abandoned.
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
