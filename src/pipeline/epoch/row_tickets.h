// SPDX-License-Identifier: Apache-2.0
#pragma once

// Distributes the rows of a batch to threads without a lock.
//
// 1. Under the pipeline's lock, a thread finds a batch with untaken rows and takes the first of them.
// 2. The thread then takes further rows without the lock: take() is one compare-and-swap.
// 3. A thread that must work on untaken rows reserves all of them with pause() and releases them with resume(), without
//    the lock. Threads that find no rows because of a pause take the lock and wait.
// 4. When no rows are left, or the pipeline recalls its threads, each thread reports once how many rows it filled. The
//    thread whose finish() returns true was the last, and settles the batch under the lock.
//
// Each batch therefore costs a thread one critical section, however many rows the batch has. Rows are handed out one by
// one, or in runs of the format's grain, so a slow sample does not delay other rows.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/check.h"

namespace feedline::pipeline {

// Consecutive rows.
struct RowRun {
  std::uint64_t first = 0;
  std::uint64_t rows = 0;  // 0 if there are none
  bool is_paused = false;  // none until resume() is called
};

class RowTickets {
 public:
  // Must be called before other threads can see the batch. Rows are not available before resume(0).
  void announce(std::uint64_t rows) {
    rows_ = rows;
    missing_.store(rows, std::memory_order_relaxed);
    next_.store(kPaused, std::memory_order_relaxed);
  }
  void open(std::uint64_t rows) {
    announce(rows);
    resume(0);
  }

  // May be called by any thread: takes up to `most` rows to fill.
  RowRun take(std::uint64_t most) {
    // acquire: see writes to the memory of these rows between pause() and resume()
    std::uint64_t first = next_.load(std::memory_order_acquire);
    while (first < rows_) {
      const std::uint64_t end = std::min(first + most, rows_);
      if (next_.compare_exchange_weak(first, end, std::memory_order_acquire)) return {first, end - first};
    }
    return {0, 0, first == kPaused};
  }
  // May be called by any thread: reports how many of its rows the thread has filled. Returns true if all rows of the
  // batch are filled and their writes are visible to the caller. Threads that have reported all their rows must not
  // access the batch's memory any more.
  bool finish(std::uint64_t rows) {
    if (rows == 0) return false;
    const std::uint64_t missing = missing_.fetch_sub(rows, std::memory_order_acq_rel);
    FEEDLINE_CHECK(missing >= rows);
    return missing == rows;
  }

  // Returns the number of unfinished rows, for messages.
  std::uint64_t missing() const { return missing_.load(std::memory_order_relaxed); }

  bool is_paused() const { return next_.load(std::memory_order_relaxed) == kPaused; }
  // May be called by any thread that has rows of the batch: blocks take() until resume(). Returns the first untaken
  // row, or nullopt if there is none or another thread has paused the batch.
  std::optional<std::uint64_t> pause() {
    std::uint64_t first = next_.load(std::memory_order_relaxed);
    while (first < rows_)
      if (next_.compare_exchange_weak(first, kPaused, std::memory_order_relaxed)) return first;
    return std::nullopt;
  }
  void resume(std::uint64_t first) {
    std::uint64_t paused = kPaused;  // unless it was closed in the meantime
    next_.compare_exchange_strong(paused, first, std::memory_order_release, std::memory_order_relaxed);
  }
  // Permanently blocks take().
  void close() { next_.store(kClosed, std::memory_order_relaxed); }
  // Called under the lock: adds one row to fill; the caller has its ticket.
  void reopen_one() { missing_.store(1, std::memory_order_relaxed); }

 private:
  // beyond the rows of any batch
  static constexpr std::uint64_t kPaused = ~std::uint64_t{1}, kClosed = ~std::uint64_t{0};

  std::atomic<std::uint64_t> next_{0};     // the first untaken row
  std::atomic<std::uint64_t> missing_{0};  // rows not filled
  std::uint64_t rows_ = 0;
};

}  // namespace feedline::pipeline
