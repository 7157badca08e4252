// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/source.h"
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
  std::uint64_t batch_bytes = 0;       // of the largest batch
  std::uint64_t slots = 0;             // batches held ahead of the user at most
  std::uint64_t most_slots = 0;        // the same where the loop comes in bursts; see adapts
  bool adapts = false;                 // the numbers of threads and of slots in use change while it runs
  bool short_rows = false;             // filled faster than a thread wakes up
  std::uint64_t read_ahead_bytes = 0;  // of stored samples that are fetched before a thread comes for them, at most
  std::string budget_reason;           // where the budget comes from, for explain()
};

// kConfig: an option out of range, or a budget that does not hold one batch.
Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options);

// A whole epoch of this rank.
plan::Plan whole_epoch(const PipelinePlan& plan, std::uint64_t epoch = 0);

// Threads that fill batches of one epoch after the other.
//
// Threads: begin, poll and stop belong to one caller at a time (the consumer); stats, bad_samples and position may be
// called by any. Worker threads start with the first begin() and end with stop() or the destructor. In a child after
// fork() the threads are gone: begin and poll fail, the destructor leaves everything as it is.
class Pipeline {
 public:
  Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // As in LoaderState.
  struct Start {
    std::uint64_t epoch = 0;
    std::uint64_t position = 0;
    std::vector<Positions> delivered;
    std::uint64_t left_out = 0;
  };
  // Abandons what runs and begins an epoch. prepare_next: the one after it will follow, in all likelihood, and its
  // first batches are filled while this one's last ones are used.
  Result<void> begin(const Start& start, bool prepare_next);
  // See Loader::give and Loader::end_giving.
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  void stop();

  // What was delivered of the epoch that runs or ran last.
  Start position() const;
  // Does the epoch that was begun have a batch for any rank?
  bool has_batches() const;
  // See Loader::rows_per_rank.
  std::vector<std::uint64_t> rows_per_rank() const;
  // See Loader::leave_a_cpu and Loader::changes.
  void leave_a_cpu();
  std::uint64_t changes() const;
  std::vector<BadSample> bad_samples(std::uint64_t from = 0) const;
  std::uint64_t bad_count() const;
  LoaderStats stats() const;
  const PipelinePlan& plan() const;
  std::string explain_reads() const;  // empty: nothing is read ahead

  struct Impl;  // defined in pipeline.cpp

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::pipeline
