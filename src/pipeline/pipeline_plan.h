// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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

class BatchMix;
class Finishing;

// What a pipeline will do, computed and checked before the first read. What the options leave open is decided here, and
// nowhere again: whoever needs to know asks the plan, not the options.
struct PipelinePlan {
  // which samples
  plan::OrderConfig order;
  bool is_given = false;         // the caller gives the order, and `order` is nobody's
  std::uint64_t batch_size = 1;  // rows by which this rank's order is divided; with buckets: rows of the largest batch
  std::uint64_t most_rows = 1;   // most rows of a batch on this rank, for its memory: fewer if an epoch has fewer
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  bool drop_last = false;
  Uneven uneven = Uneven::kPad;
  bool in_order = true;

  // what becomes of bad ones, and of none
  OnError on_error = OnError::kRaise;
  std::string on_error_reason;  // why it is not what was asked for; empty: it is
  std::uint64_t error_budget = 0;
  std::chrono::milliseconds timeout{0};

  // threads
  int threads = 1;
  int threads_beside_gpu = 1;  // of them, where one CPU is left to the thread that feeds a GPU
  bool adapts = false;         // how many of them work, and the slots in use, change while it runs

  // what is done to a batch whose rows are there; nullptr: nothing
  std::shared_ptr<const BatchMix> mix;

  // what the device makes of it; nullptr: nothing
  std::shared_ptr<const Finishing> finishing;

  // memory
  std::uint64_t memory_budget = 0;
  std::string budget_reason;  // where the budget comes from, for explain()
  // Of every batch, or per bucket; empty: batches have lengths of their own, and no buckets.
  std::vector<std::shared_ptr<const batch::BatchLayout>> layouts;
  std::uint64_t batch_bytes = 0;       // of the largest batch, without its late fields
  std::uint64_t late_bytes = 0;        // of these in a usual batch; 0: there are none
  bool late_is_guess = false;          // which no format knows; measured with the first batches
  std::uint64_t slots = 0;             // batches held ahead of the user at most
  std::uint64_t most_slots = 0;        // the same where the loop comes in bursts; see adapts
  bool short_rows = false;             // filled faster than a thread wakes up
  std::uint64_t read_ahead_bytes = 0;  // of stored samples that are fetched before a thread comes for them, at most
  std::uint64_t copy_bytes = 0;        // of pieces of shards on their way into a cache of this machine, at most

  std::uint64_t bytes_for_batches() const { return memory_budget - read_ahead_bytes - copy_bytes; }
};

// Of a row of a batch that is delivered.
Schema schema_of(const Recipe& recipe, const PipelinePlan& plan);
// Of a batch of so many samples.
std::uint64_t rows_delivered(const PipelinePlan& plan, std::uint64_t samples);
std::string explain_mix(const PipelinePlan& plan);  // empty: nothing is mixed

// kConfig: an option out of range, samples that cannot be mixed as they are to be, or a budget that does not hold one
// batch.
Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options);
Result<PipelinePlan> plan_given(const Recipe& recipe, const GivenOptions& options);

// What both kinds of options have.
LoaderOptions shared_options(const GivenOptions& options);

// Where an epoch begins, or how much of it was delivered. As in LoaderState.
struct EpochStart {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::vector<Positions> delivered;
  std::uint64_t left_out = 0;
};

// How what is left of an epoch is cut into this rank's batches.
plan::PlanConfig cut_of(const PipelinePlan& plan, const EpochStart& start = {});
// A whole epoch of this rank.
plan::Plan whole_epoch(const PipelinePlan& plan, std::uint64_t epoch = 0);

}  // namespace feedline::pipeline
