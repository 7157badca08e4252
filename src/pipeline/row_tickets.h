// SPDX-License-Identifier: Apache-2.0
#pragma once

// How threads share the rows of a batch without a lock.
//
// 1. Under the pipeline's lock a thread finds a batch with rows that nobody has, and takes the first of them.
// 2. From then on it takes the next ones by itself: take() is one compare-and-swap.
// 3. When nothing is left, or the pipeline calls its threads back, it says how many rows it has filled, once. The
//    thread whose finish() says true was the last one, and settles the batch under the lock.
//
// So a batch costs each thread a visit to the lock, however many rows it has. Rows go out one by one, or in runs of the
// format's grain, as they would under the lock: a slow sample delays no other row.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace feedline::pipeline {

// Rows that follow each other.
struct RowRun {
  std::uint64_t first = 0;
  std::uint64_t rows = 0;  // 0: there are none
};

class RowTickets {
 public:
  // Before other threads know the batch.
  void open(std::uint64_t rows) {
    rows_ = rows;
    missing_.store(rows, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
  }

  // Any thread: rows that now are its own to fill, at most so many.
  RowRun take(std::uint64_t most) {
    // acquire: what was done to the memory of these rows between pause() and resume() comes first
    std::uint64_t first = next_.load(std::memory_order_acquire);
    while (first < rows_) {
      const std::uint64_t end = std::min(first + most, rows_);
      if (next_.compare_exchange_weak(first, end, std::memory_order_acquire)) return {first, end - first};
    }
    return {};
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

  // The rest is the lock holder's. Nobody takes a row until resume(); gives the first one that nobody has.
  std::uint64_t pause() { return next_.exchange(rows_, std::memory_order_relaxed); }
  void resume(std::uint64_t first) { next_.store(first, std::memory_order_release); }
  // Nobody takes a row any more.
  void close() { pause(); }
  // One more row is to be filled, whose ticket the caller has.
  void reopen_one() { missing_.store(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> next_{0};     // the first row that nobody has
  std::atomic<std::uint64_t> missing_{0};  // rows not filled
  std::uint64_t rows_ = 0;
};

}  // namespace feedline::pipeline
