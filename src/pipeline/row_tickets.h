// SPDX-License-Identifier: Apache-2.0
#pragma once

// How threads share the rows of a batch without a lock.
//
// 1. Under the pipeline's lock a thread finds a batch with rows that nobody has, and takes the first of them.
// 2. From then on it takes the next ones by itself: take() is one compare-and-swap.
// 3. A thread that has something to do to the rows that nobody has takes all of them away with pause(), and gives them
//    back with resume(), without the lock: threads that find none meanwhile go to the lock and wait there.
// 4. When nothing is left, or the pipeline calls its threads back, it says how many rows it has filled, once. The
//    thread whose finish() says true was the last one, and settles the batch under the lock.
//
// So a batch costs each thread a visit to the lock, however many rows it has. Rows go out one by one, or in runs of the
// format's grain, as they would under the lock: a slow sample delays no other row.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/check.h"

namespace feedline::pipeline {

// Rows that follow each other.
struct RowRun {
  std::uint64_t first = 0;
  std::uint64_t rows = 0;  // 0: there are none
  bool is_paused = false;  // but there will be, once somebody calls resume()
};

class RowTickets {
 public:
  // Before other threads know the batch. Nobody gets a row until resume(0).
  void announce(std::uint64_t rows) {
    rows_ = rows;
    missing_.store(rows, std::memory_order_relaxed);
    next_.store(kPaused, std::memory_order_relaxed);
  }
  void open(std::uint64_t rows) {
    announce(rows);
    resume(0);
  }

  // Any thread: rows that now are its own to fill, at most so many.
  RowRun take(std::uint64_t most) {
    // acquire: what was done to the memory of these rows between pause() and resume() comes first
    std::uint64_t first = next_.load(std::memory_order_acquire);
    while (first < rows_) {
      const std::uint64_t end = std::min(first + most, rows_);
      if (next_.compare_exchange_weak(first, end, std::memory_order_acquire)) return {first, end - first};
    }
    return {0, 0, first == kPaused};
  }
  // Any thread: it has filled so many of its rows. true: all rows of the batch are filled, and what their threads wrote
  // can be seen. Whoever had none left then must not touch the batch's memory any more.
  bool finish(std::uint64_t rows) {
    if (rows == 0) return false;
    const std::uint64_t missing = missing_.fetch_sub(rows, std::memory_order_acq_rel);
    FEEDLINE_CHECK(missing >= rows);
    return missing == rows;
  }

  // Rows not finished, for messages.
  std::uint64_t missing() const { return missing_.load(std::memory_order_relaxed); }

  bool is_paused() const { return next_.load(std::memory_order_relaxed) == kPaused; }
  // Any thread that has rows of the batch: nobody takes one until resume(). Gives the first one that nobody has;
  // nullopt: there is none, or another thread has paused it.
  std::optional<std::uint64_t> pause() {
    std::uint64_t first = next_.load(std::memory_order_relaxed);
    while (first < rows_)
      if (next_.compare_exchange_weak(first, kPaused, std::memory_order_relaxed)) return first;
    return std::nullopt;
  }
  void resume(std::uint64_t first) {
    std::uint64_t paused = kPaused;  // or it was closed meanwhile, and stays so
    next_.compare_exchange_strong(paused, first, std::memory_order_release, std::memory_order_relaxed);
  }
  // Nobody takes a row any more.
  void close() { next_.store(kClosed, std::memory_order_relaxed); }
  // The lock holder's: one more row is to be filled, whose ticket the caller has.
  void reopen_one() { missing_.store(1, std::memory_order_relaxed); }

 private:
  // beyond the rows of any batch
  static constexpr std::uint64_t kPaused = ~std::uint64_t{1}, kClosed = ~std::uint64_t{0};

  std::atomic<std::uint64_t> next_{0};     // the first row that nobody has
  std::atomic<std::uint64_t> missing_{0};  // rows not filled
  std::uint64_t rows_ = 0;
};

}  // namespace feedline::pipeline
