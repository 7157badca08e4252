// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks during the first epoch whether objects that were opened with a cached index are unchanged
// (format::UncheckedObject). Without this check, a rank whose cached index describes a shard that has since been
// replaced would follow a different plan than a rank that has indexed the new shard, and both would read samples
// without an error.
//
//   begin() ──► one thread: reads a byte of each object, several at a time ──► trouble(), wait()
//
// The check includes objects that this rank does not read, because the plan depends on all objects.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "feedline/error.h"
#include "format/format.h"
#include "storage/fetch.h"

namespace feedline::pipeline {

// Only the pipeline's owner may call begin(), wait() and stop(); any thread may call the other functions.
class VersionCheck {
 public:
  // Returns nullptr if no object needs a check. The format must outlive the result.
  static std::unique_ptr<VersionCheck> make(const format::RecordFormat& format);
  ~VersionCheck();  // calls stop()

  // Checks objects whose state is unknown, including those whose check failed. Does nothing if all states are known or
  // being checked. Returns an error if no thread can be created.
  Result<void> begin();
  // Returns the first error that was found so far.
  Result<void> trouble() const;
  // Waits up to `most` until all objects are checked. Returns whether all objects have been checked, or the error from
  // trouble().
  Result<bool> wait(std::chrono::milliseconds most);
  void stop();  // abandons pending checks and joins the thread
  std::string explain() const;

 private:
  using Objects = std::vector<std::unique_ptr<const format::UncheckedObject>>;
  struct Question : storage::Fetch {
    std::size_t object = 0;
  };
  // The number of parallel requests is small, because reading samples also requires connections. At a latency of 50 ms,
  // a thousand requests take 7 s.
  static constexpr std::size_t kAtOnce = 8;
  explicit VersionCheck(Objects objects);
  std::optional<Error> ask_all();
  Result<void> start(Question& question);
  std::optional<std::size_t> next_unknown(std::size_t from) const;  // nullopt if there is none, or when stopping
  Result<void> take(std::size_t object, Result<void> came);
  void end(std::optional<Error> error, bool is_lost);

  const Objects objects_;
  std::array<Question, kAtOnce> questions_;           // the thread's
  const std::unique_ptr<storage::FetchQueue> queue_;  // the thread's, except for wake()
  std::atomic<bool> is_known_{false};                 // all objects are checked, without errors

  mutable std::mutex mutex_;
  std::condition_variable ended_cv_;
  // guarded by mutex_
  std::vector<bool> known_;
  std::size_t known_count_ = 0;
  std::optional<Error> error_;
  bool is_running_ = false, is_stopping_ = false;
  bool is_lost_ = false;  // the thread ended by an exception, with requests in flight

  std::optional<base::Thread> thread_;  // last member: it uses all of the above
};

}  // namespace feedline::pipeline
