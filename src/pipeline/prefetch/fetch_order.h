// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the sample to fetch next: from the plan, across epoch boundaries, or from the samples passed by the caller.
//
// Owned by a FetchScheduler and used under its lock. Objects that allocate or free memory are passed in or out, to be
// created and destroyed outside the lock.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/sample/record_reader.h"
#include "plan/plan.h"

namespace feedline::pipeline {

struct PipelinePlan;

// Not thread-safe.
class FetchOrder {
 public:
  // slack: consecutive samples that reader threads may miss just before the next one to fetch. The plan must outlive
  // it.
  FetchOrder(const PipelinePlan& plan, std::uint64_t slack) : plan_(plan), slack_(slack) {}

  // State released by the order, to be destroyed outside the lock.
  struct Past {
    std::shared_ptr<const plan::Plan> plan;
    std::deque<std::vector<std::uint64_t>> given;
  };
  // goes_on: another epoch is likely to follow this one. Returns true if the fetched samples are no longer needed.
  bool begin(bool goes_on, Past& past);
  // Adds the caller's next batch of samples. Samples of batches before `oldest` are no longer needed.
  void give(std::vector<std::uint64_t> samples, std::uint64_t oldest);
  // Called when a thread needed this row's sample and it was not fetched: the thread is just before the next sample to
  // fetch, or the order follows another plan. Returns true if the order now continues after this row, and the fetched
  // samples are no longer needed.
  bool missed(const PlanRow& row, Past& past);
  void found() { misses_ = 0; }
  // Follows no order until missed().
  void forget(Past& past);

  // Returns nullopt if it follows no order or has reached its end.
  std::optional<std::uint64_t> next();
  // Returns true at the end of an epoch if another one is likely to follow. Planning it takes time: pass its number and
  // plan to follow(), with the value that ended() returned before.
  bool needs_next_epoch() const;
  struct PlannedEpoch {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
  };
  PlannedEpoch ended() const { return {next_.epoch, next_.plan}; }
  // Does nothing if the position has left the end of `ended`. The caller destroys the remaining elements of
  // `following`.
  void follow(const PlannedEpoch& ended, PlannedEpoch& following);

 private:
  // The next row; unknown if it has no plan and is not given.
  struct Cursor {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
    std::uint64_t batch = 0;
    std::uint64_t row = 0;
    bool is_next_epoch = false;  // of an epoch that has not begun
    bool is_given = false;
  };
  // The given batches, starting at number `first`.
  struct GivenBatches {
    std::uint64_t first = 0;
    std::deque<std::vector<std::uint64_t>> samples;
  };
  std::optional<std::uint64_t> next_given();

  const PipelinePlan& plan_;
  const std::uint64_t slack_;
  Cursor next_;
  GivenBatches given_;
  bool goes_on_ = false;
  std::uint64_t misses_ = 0;  // in a row
};

}  // namespace feedline::pipeline
