// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/recipe.h"
#include "plan/order.h"
#include "plan/plan.h"

namespace feedline::batch {
class BatchLayout;
}

namespace feedline::pipeline {

// What a pipeline will do, computed and checked before the first read.
struct PipelinePlan {
  LoaderOptions options;  // as given, with num_workers, memory_budget and, with buckets, batch_size resolved
  plan::OrderConfig order;
  // Of every batch, or per bucket; empty: batches have lengths of their own, and no buckets.
  std::vector<std::shared_ptr<const batch::BatchLayout>> layouts;
  std::uint64_t batch_bytes = 0;       // of the largest batch, without its late fields
  std::uint64_t late_bytes = 0;        // of these in a usual batch; 0: there are none
  bool late_is_guess = false;          // which no format knows; measured with the first batches
  std::uint64_t slots = 0;             // batches held ahead of the user at most
  std::uint64_t most_slots = 0;        // the same where the loop comes in bursts; see adapts
  bool adapts = false;                 // the numbers of threads and of slots in use change while it runs
  bool short_rows = false;             // filled faster than a thread wakes up
  std::uint64_t read_ahead_bytes = 0;  // of stored samples that are fetched before a thread comes for them, at most
  std::string budget_reason;           // where the budget comes from, for explain()
};

// kConfig: an option out of range, or a budget that does not hold one batch.
Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options);

// Where an epoch begins, or how much of it was delivered. As in LoaderState.
struct EpochStart {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::vector<Positions> delivered;
  std::uint64_t left_out = 0;
};

// A whole epoch of this rank.
plan::Plan whole_epoch(const PipelinePlan& plan, std::uint64_t epoch = 0);

}  // namespace feedline::pipeline
