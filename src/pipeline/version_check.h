// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks, during the first epoch, whether objects opened from a cached index are unchanged (format::UncheckedObject).
// Otherwise a rank with the index of a shard that has since been replaced would follow a different plan than a rank
// that indexed it again; both would read their shares without an error.
//
//   begin() ──► one thread: reads a byte of each object, several at a time ──► trouble(), wait()
//
// All objects are checked, not only those that this rank reads: the plan depends on all of them.

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

// Only the pipeline's owner calls begin(), wait() and stop(); any thread calls the others.
class VersionCheck {
 public:
  // Returns nullptr if there is nothing to check. The format must outlive it.
  static std::unique_ptr<VersionCheck> make(const format::RecordFormat& format);
  ~VersionCheck();  // calls stop()

  // Checks objects whose state is unknown: retries after an error, and does nothing if all are known or being checked.
  // Returns an error if no thread could be created.
  Result<void> begin();
  // Returns the first error found so far.
  Result<void> trouble() const;
  // Waits up to `most` until everything is checked; returns whether it is, or the error of trouble().
  Result<bool> wait(std::chrono::milliseconds most);
  void stop();  // abandons pending checks and joins the thread
  std::string explain() const;

 private:
  using Objects = std::vector<std::unique_ptr<const format::UncheckedObject>>;
  struct Question : storage::Fetch {
    std::size_t object = 0;
  };
  // The number of parallel requests is small, because samples need the connections. At 50 ms a thousand take 7 s.
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
