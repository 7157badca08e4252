// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mutex for short critical sections only: no system calls, no allocations that may become one, nothing whose cost
// grows with the number of threads. Wake, free and measure before or after the section.
//
// Each thread sets a byte while it holds a BriefLock, which costs two stores. The kernel can block system calls while
// that byte is set (brief_lock_fixture.h), so a test can detect every one. The lock's own futex calls are made while
// the byte is clear.

#include <condition_variable>
#include <mutex>

namespace feedline::base {

// 1 while the thread holds a BriefLock. The values are those of the kernel's syscall user dispatch. volatile because
// the kernel may read it at any time.
inline thread_local volatile char holds_brief_lock = 0;

// Owns a mutex for its lifetime, like std::unique_lock. Must not be nested.
class BriefLock {
 public:
  explicit BriefLock(std::mutex& mutex) : lock_(mutex) { holds_brief_lock = 1; }
  ~BriefLock() {
    if (lock_.owns_lock()) holds_brief_lock = 0;
  }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

  void lock() {
    lock_.lock();
    holds_brief_lock = 1;
  }
  void unlock() {
    holds_brief_lock = 0;
    lock_.unlock();
  }
  void wait(std::condition_variable& changed) {
    holds_brief_lock = 0;
    changed.wait(lock_);
    holds_brief_lock = 1;
  }
  template <typename Time>
  std::cv_status wait_until(std::condition_variable& changed, const Time& deadline) {
    holds_brief_lock = 0;
    const std::cv_status status = changed.wait_until(lock_, deadline);
    holds_brief_lock = 1;
    return status;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace feedline::base
