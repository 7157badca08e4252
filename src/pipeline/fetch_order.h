// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which sample is fetched next: the plan's, over the borders of epochs, or those that the caller gave.
//
// Owned by a FetchExchange, used under its lock. What takes memory, or gives it back, is handed in or out, so that it
// happens beside the lock.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "plan/plan.h"

namespace feedline::pipeline {

struct PipelinePlan;

// A row of an epoch, in the order in which rows are handed out.
struct PlanRow {
  std::uint64_t epoch = 0;
  const std::shared_ptr<const plan::Plan>* plan = nullptr;  // nullptr: the order is given, or the row is in no order
  std::uint64_t batch = 0;
  std::uint64_t row = 0;
  bool is_given = false;
};

// Not thread-safe.
class FetchOrder {
 public:
  // slack: samples in a row that threads may miss just before what is fetched next. The plan outlives it.
  FetchOrder(const PipelinePlan& plan, std::uint64_t slack) : plan_(plan), slack_(slack) {}

  // What it lets go of, to be destroyed without the lock.
  struct Past {
    std::shared_ptr<const plan::Plan> plan;
    std::deque<std::vector<std::uint64_t>> given;
  };
  // goes_on: another epoch is likely to follow the one that begins. true: nobody will come for what was fetched.
  bool begin(bool goes_on, Past& past);
  // The samples of the next batch that the caller gives. Nobody will come for those of batches before `oldest`.
  void give(std::vector<std::uint64_t> samples, std::uint64_t oldest);
  // A thread came for the sample of this row, and nobody had fetched it: the thread is just before what is fetched, or
  // the plan is not the one that is followed (any more). true: it goes on behind the row, and nobody will come for
  // what was fetched.
  bool missed(const PlanRow& row, Past& past);
  void found() { misses_ = 0; }
  // It follows nothing, until missed().
  void forget(Past& past);

  // nullopt: it follows nothing, or all of it was said.
  std::optional<std::uint64_t> next();
  // Was the last sample said of an epoch that another one is likely to follow? To plan that takes some time: its number
  // and plan are what follow() gets, with what ended() gave before.
  bool needs_next_epoch() const;
  struct PlannedEpoch {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
  };
  PlannedEpoch ended() const { return {next_.epoch, next_.plan}; }
  // Nothing happens where it does not stand at the end of `ended` any more. `following` is what is to be destroyed.
  void follow(const PlannedEpoch& ended, PlannedEpoch& following);

 private:
  // What is next; no plan, and not given: not known.
  struct Cursor {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
    std::uint64_t batch = 0;
    std::uint64_t row = 0;
    bool is_next_epoch = false;  // of an epoch that is not begun yet
    bool is_given = false;
  };
  // The batches that were given, from number `first` on.
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
