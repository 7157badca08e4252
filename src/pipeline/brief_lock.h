// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mutex under which nothing takes long: no system call, no allocation that may become one, nothing that grows with
// threads. Whoever has something to wake, to free or to measure does it before or after.
//
// Each thread says in a byte of its own whether it holds one, which costs two stores: the kernel can be told to stop
// system calls while that byte is set (brief_lock_fixture.h), so that a test sees all of them. What the lock itself
// asks of the kernel, to sleep or to wake who waits for it, happens while the byte is not set.

#include <condition_variable>
#include <mutex>

namespace feedline::pipeline {

// 1: the thread holds a BriefLock. The values are those of the kernel's syscall user dispatch. volatile, as it is read
// by the kernel in the middle of anything.
inline thread_local volatile char holds_brief_lock = 0;

// Owns a mutex for its lifetime, as std::unique_lock. Not to be nested in another one.
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

}  // namespace feedline::pipeline
