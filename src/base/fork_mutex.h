// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace feedline {

// Returns the number of fork() calls between the first process and this one.
std::uint32_t fork_generation();

// A mutex for state that threads share while reading files. After fork() the thread that held a mutex does not exist in
// the child, so a std::mutex would stay locked forever. A ForkMutex is unlocked in the child. Requires: the state is
// valid whenever the holder may block, for example in a read.
class ForkMutex {
 public:
  ForkMutex() = default;
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() {
    if (generation_.load(std::memory_order_acquire) != fork_generation()) renew();
    mutex_.lock();
  }
  bool try_lock() {
    if (generation_.load(std::memory_order_acquire) != fork_generation()) renew();
    return mutex_.try_lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr std::uint32_t kRenewing = ~std::uint32_t{0};

  void renew() {
    std::uint32_t seen = generation_.load(std::memory_order_acquire);
    while (seen != fork_generation()) {
      if (seen != kRenewing && generation_.compare_exchange_strong(seen, kRenewing, std::memory_order_acq_rel)) {
        std::construct_at(&mutex_);  // not destroyed: it may be locked
        generation_.store(fork_generation(), std::memory_order_release);
        return;
      }
      std::this_thread::yield();  // another thread of the child renews it
      seen = generation_.load(std::memory_order_acquire);
    }
  }

  std::atomic<std::uint32_t> generation_{fork_generation()};
  std::mutex mutex_;
};

}  // namespace feedline
