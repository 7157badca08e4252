// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks, while the first epoch runs, whether the objects that were opened by what is kept of them are still those
// (format::UncheckedObject). Without it a rank that has the index of a shard that was replaced since then would follow
// another plan than a rank that has made one anew; each would read its own share without an error.
//
//   begin() ──► one thread: a byte of each object, some at a time ──► trouble(), wait()
//
// All objects are asked about, not only those that this rank reads from: a plan is made of all of them.

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

// begin(), wait() and stop() belong to the pipeline's caller; the rest to any thread.
class VersionCheck {
 public:
  // nullptr: there is nothing to ask. The format outlives it.
  static std::unique_ptr<VersionCheck> make(const format::RecordFormat& format);
  ~VersionCheck();  // stop()

  // Asks what is not known yet: after an error once more, and nothing where all is known, or is being asked for. An
  // error where there is no thread for it.
  Result<void> begin();
  // What was found of any object so far.
  Result<void> trouble() const;
  // Is everything asked for? Waits for it so long. The error of trouble().
  Result<bool> wait(std::chrono::milliseconds most);
  void stop();  // what is being asked for is left, and the thread ends
  std::string explain() const;

 private:
  using Objects = std::vector<std::unique_ptr<const format::UncheckedObject>>;
  struct Question : storage::Fetch {
    std::size_t object = 0;
  };
  // Requests at a time: a few, as samples are what the connections are for. At 50 ms a thousand take 7 s.
  static constexpr std::size_t kAtOnce = 8;
  explicit VersionCheck(Objects objects);
  std::optional<Error> ask_all();
  Result<void> start(Question& question);
  std::optional<std::size_t> next_unknown(std::size_t from) const;  // nullopt: there is none, or it is to stop
  Result<void> take(std::size_t object, Result<void> came);
  void end(std::optional<Error> error, bool is_lost);

  const Objects objects_;
  std::array<Question, kAtOnce> questions_;           // the thread's
  const std::unique_ptr<storage::FetchQueue> queue_;  // the thread's, but for wake()
  std::atomic<bool> is_known_{false};                 // of all objects, and all is well

  mutable std::mutex mutex_;
  std::condition_variable ended_cv_;
  // guarded by mutex_
  std::vector<bool> known_;
  std::size_t known_count_ = 0;
  std::optional<Error> error_;
  bool is_running_ = false, is_stopping_ = false;
  bool is_lost_ = false;  // the thread ended by an exception, with questions under way

  std::optional<base::Thread> thread_;  // last: it uses all of the above
};

}  // namespace feedline::pipeline
