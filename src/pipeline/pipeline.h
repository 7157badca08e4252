// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/source.h"

namespace feedline::pipeline {

// What a pipeline will do, computed and checked before the first read.
struct PipelinePlan {
  LoaderOptions options;  // as given, with num_workers and memory_budget resolved
  std::uint64_t batch_bytes = 0;
  std::uint64_t slots = 0;    // batches held ahead of the user at most
  std::string budget_reason;  // where the budget comes from, for explain()
};

// kConfig: an option out of range, or a budget that does not hold one batch.
Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options);

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

  struct Start {
    std::uint64_t epoch = 0;
    std::uint64_t batch = 0;
    std::uint64_t refilled = 0;
    std::vector<std::uint64_t> ahead;
  };
  // Abandons what runs and begins an epoch.
  Result<void> begin(const Start& start);
  // See Loader::give and Loader::end_giving.
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  void stop();

  // Next batch to deliver of the epoch that runs or ran last.
  Start position() const;
  std::vector<BadSample> bad_samples() const;
  LoaderStats stats() const;
  const PipelinePlan& plan() const;

  struct Impl;  // defined in pipeline.cpp

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::pipeline
