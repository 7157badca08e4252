// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/sample/recipe.h"
#include "plan/order.h"
#include "plan/plan.h"

namespace feedline::batch {
class BatchLayout;
}

namespace feedline::pipeline {

class BatchMix;
class DevicePostprocess;

// The settings of a pipeline, which are computed and checked before the first read. Options are resolved only here: all
// other code reads the plan instead of the options.
struct PipelinePlan {
  // selection of samples
  plan::OrderConfig order;
  bool is_given = false;        // the caller passes the order; `order` has only the seed and the size
  plan::PlanConfig ranks;       // how a whole epoch is divided into batches of the ranks
  std::uint64_t most_rows = 1;  // maximum rows of a batch on this rank, for its memory: fewer if an epoch has fewer
  bool in_order = true;

  // handling of bad samples
  OnError on_error = OnError::kRaise;
  std::string on_error_reason;  // why it differs from the request; empty if it does not
  std::uint64_t error_budget = 0;
  std::chrono::milliseconds timeout{0};

  // threads
  int threads = 1;
  int threads_with_gpu = 1;  // threads if one CPU is left to the thread that feeds a GPU
  bool adapts = false;       // the number of working threads and of slots changes at runtime

  // applied to filled batches; nullptr if there is none
  std::shared_ptr<const BatchMix> mix;

  // device work; nullptr if there is none
  std::shared_ptr<const DevicePostprocess> postprocess;

  // memory
  std::uint64_t memory_budget = 0;
  std::string budget_reason;  // source of the budget, for explain()
  // One layout for every batch, or one per bucket; empty if each batch has a different length and there are no buckets.
  std::vector<std::shared_ptr<const batch::BatchLayout>> layouts;
  std::uint64_t batch_bytes = 0;       // of the largest batch, without its variable-size fields
  std::uint64_t variable_bytes = 0;    // variable-size fields of a typical batch; 0 if there are none
  bool variable_is_guess = false;      // unknown to the format; measured with the first batches
  std::uint64_t slots = 0;             // maximum batches ahead of the user
  std::uint64_t most_slots = 0;        // the same if the loop consumes in bursts; see adapts
  bool short_rows = false;             // filled faster than a thread wakes up
  std::uint64_t read_ahead_bytes = 0;  // maximum for stored samples that are fetched ahead
  std::uint64_t copy_bytes = 0;        // maximum for pieces of shards in transfer to a cache
  std::uint64_t block_bytes = 0;       // maximum for decompressed blocks of the source
  std::uint64_t decoder_budget = 0;    // maximum for open video decoders; 0: the usual one

  std::uint64_t bytes_for_batches() const { return memory_budget - read_ahead_bytes - copy_bytes - block_bytes; }
};

// Returns the schema of a delivered row.
Schema schema_of(const Recipe& recipe, const PipelinePlan& plan);
// Returns the number of rows that are delivered from a batch of this many samples.
std::uint64_t rows_delivered(const PipelinePlan& plan, std::uint64_t samples);
std::string explain_mix(const PipelinePlan& plan);  // empty if nothing is mixed

// kConfig: an option out of range, samples that cannot be mixed as requested, or a budget too small for one batch.
Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options);
// Like plan_pipeline(), for an order that the caller passes; options for the order are ignored.
Result<PipelinePlan> plan_given(const Recipe& recipe, const LoaderOptions& options);

// The position where an epoch starts or resumes, as in LoaderState.
struct EpochStart {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::vector<Positions> delivered;
  std::uint64_t left_out = 0;
};

// Returns how the rest of an epoch is divided into batches of this rank.
plan::PlanConfig cut_of(const PipelinePlan& plan, const EpochStart& start = {});
// Returns this rank's plan for a whole epoch.
plan::Plan whole_epoch(const PipelinePlan& plan, std::uint64_t epoch = 0);

}  // namespace feedline::pipeline
