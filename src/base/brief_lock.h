// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mutex for short critical sections: no system calls, no allocations that may lead to one, and no work that grows
// with the number of threads. Wake threads, free memory and take measurements before or after the section.
//
// A thread sets a thread-local byte while it holds a BriefLock; this costs two stores. While that byte is set, the
// kernel can block system calls (brief_lock_fixture.h), so tests can detect every one. The byte is clear during the
// lock's own futex calls.

#include <condition_variable>
#include <mutex>

namespace feedline::base {

// 1 while the thread holds a BriefLock. The values are those that the kernel's syscall user dispatch expects. volatile
// because the kernel may read it at any time.
inline thread_local volatile char holds_brief_lock = 0;

// Owns a mutex for its lifetime, like std::unique_lock. A thread must not hold two BriefLocks at once.
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
