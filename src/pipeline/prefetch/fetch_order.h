// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the sample to fetch next: from the plan, across epoch boundaries, or from samples that the caller passes.
//
// Owned by a FetchScheduler and used under its lock. Objects that allocate or free memory are parameters, so that the
// caller creates and destroys them outside the lock.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/sample/record_reader.h"
#include "plan/plan.h"

namespace feedline::pipeline {

struct PipelinePlan;

// Not thread-safe.
class FetchOrder {
 public:
  // slack: the number of consecutive samples just before the next one to fetch that reader threads may miss. The plan
  // must outlive this object.
  FetchOrder(const PipelinePlan& plan, std::uint64_t slack) : plan_(plan), slack_(slack) {}

  // State that the order no longer needs; the caller destroys it outside the lock.
  struct Past {
    std::shared_ptr<const plan::Plan> plan;
    std::deque<std::vector<GivenSample>> given;
  };
  // goes_on: another epoch is likely to follow. epoch: its number, for samples that the caller gives. Returns
  // true if all fetched samples are obsolete.
  bool begin(bool goes_on, Past& past, std::uint64_t epoch = 0);
  // Adds the caller's next batch of samples. Samples of batches before `oldest` are no longer needed.
  void give(std::vector<GivenSample> samples, std::uint64_t oldest);
  // Called if a thread needed the sample of this row but it had not been fetched: the thread is just before the next
  // sample to fetch, or in the epoch before it, or the order follows another plan. Returns true if the order continues
  // after this row, and all fetched samples are obsolete.
  bool missed(const PlanRow& row, Past& past);
  void found() { misses_ = 0; }
  // Stops following an order until missed() is called.
  void forget(Past& past);

  // Returns nullopt if there is no order to follow, or at its end.
  std::optional<std::uint64_t> next();
  // The same with the key of the sample's random draws.
  struct Row {
    std::uint64_t epoch = 0, sample = 0, draw = 0;
  };
  std::optional<Row> next_row();
  // Returns whether the end of an epoch is reached and another epoch is likely to follow. Planning the next epoch takes
  // time: pass its number and plan to follow(), with the value that ended() returned before.
  bool needs_next_epoch() const;
  struct PlannedEpoch {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
  };
  PlannedEpoch ended() const { return {next_.epoch, next_.plan}; }
  // Has no effect if the order is no longer at the end of `ended`. The caller destroys the objects that remain in
  // `following`.
  void follow(const PlannedEpoch& ended, PlannedEpoch& following);

 private:
  // The next row. The row is unknown if there is neither a plan nor a batch from the caller.
  struct Cursor {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
    std::uint64_t batch = 0;
    std::uint64_t row = 0;
    bool is_next_epoch = false;  // of an epoch that has not begun
    bool is_given = false;
  };
  // The batches given by the caller; the first one has the number `first`.
  struct GivenBatches {
    std::uint64_t first = 0;
    std::deque<std::vector<GivenSample>> samples;
  };
  std::optional<Row> next_given();
  bool is_before_next(const PlanRow& row, const std::shared_ptr<const plan::Plan>& plan) const;

  const PipelinePlan& plan_;
  const std::uint64_t slack_;
  Cursor next_;
  GivenBatches given_;
  bool goes_on_ = false;
  std::uint64_t misses_ = 0;  // in a row
};

}  // namespace feedline::pipeline
