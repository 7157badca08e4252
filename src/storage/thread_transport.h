// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "storage/transport.h"

namespace feedline::storage {

// Runs reads of any backend on blocking threads, one read per thread, if no better transport is available.
//
// An exception in a read becomes the read's error. If a thread ends, only its read fails. If no thread is left and none
// can be created, every read fails with the error of the last one.
class ThreadTransport final : public Transport {
 public:
  // The number of concurrent reads equals the number of threads, which mostly sleep; each needs a few pages of stack.
  static constexpr std::size_t kMostThreads = 64;

  explicit ThreadTransport(std::shared_ptr<const Storage> storage);
  ~ThreadTransport() override;

  std::string_view name() const override { return "threads"; }
  void start(Read& read) override;
  Read* finished(Clock::time_point until) override;
  void wake() override;

 private:
  using Reads = std::list<Read*>;  // a list, so that a thread needs no memory to pass one on
  void carry_out(Read& read) const;
  void work(Reads& hand);
  void lose(Reads& hand, Error error);
  void fail_unserved();  // guarded by mutex_

  const std::shared_ptr<const Storage> storage_;
  std::mutex mutex_;
  std::condition_variable work_cv_;      // wakes threads: a read to perform, or shutdown
  std::condition_variable finished_cv_;  // wakes finished(): a read is done, or wake()
  // guarded by mutex_
  Reads waiting_;
  Reads finished_;
  std::size_t idle_ = 0;
  std::size_t lost_ = 0;     // number of threads that an exception has ended
  Error lost_by_;            // the latest such error
  std::deque<Reads> hands_;  // each thread's current read; created with the thread, and never moved
  bool woken_ = false;
  bool stopping_ = false;
  std::vector<base::Thread> threads_;  // last: they use all of the above
};

}  // namespace feedline::storage
