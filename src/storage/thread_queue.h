// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "storage/fetch.h"

namespace feedline::storage {

// Fetches of any storage, by threads that wait, one read each: where the kernel offers or allows nothing better.
class ThreadQueue final : public FetchQueue {
 public:
  // As many reads at once as there are threads: they sleep nearly always, and each costs a stack of some pages.
  static constexpr std::size_t kMostThreads = 64;

  explicit ThreadQueue(std::shared_ptr<const Storage> storage);
  ~ThreadQueue() override;

  std::string_view name() const override { return "threads"; }
  void start(Fetch& fetch) override;
  Fetch* finished(Clock::time_point until) override;
  void wake() override;

 private:
  void work();

  const std::shared_ptr<const Storage> storage_;
  std::mutex mutex_;
  std::condition_variable work_cv_;      // threads: a fetch to do, or the end
  std::condition_variable finished_cv_;  // finished(): one is done, or wake()
  // guarded by mutex_
  std::deque<Fetch*> waiting_;
  std::deque<Fetch*> finished_;
  std::size_t idle_ = 0;
  bool woken_ = false;
  bool stopping_ = false;
  std::vector<base::Thread> threads_;  // last: they use all of the above
};

}  // namespace feedline::storage
