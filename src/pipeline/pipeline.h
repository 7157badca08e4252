// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/pipeline_plan.h"
#include "pipeline/recipe.h"

namespace feedline::device {
class Device;
}

namespace feedline::pipeline {

// What batches are filled for, where nobody says otherwise: the host.
std::shared_ptr<device::Device> usual_device();

// Threads that fill batches of one epoch after the other.
//
// Threads: begin, poll and stop belong to one caller at a time (the consumer); stats, bad_samples and position may be
// called by any. Worker threads start with the first begin() and end with stop() or the destructor. In a child after
// fork() the threads are gone, and whatever lock one of them held stays locked: begin and poll fail, stop, interrupt
// and the destructor do nothing, and all else must not be called where check_process() says so.
class Pipeline {
 public:
  Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan,
           std::shared_ptr<device::Device> device = usual_device());
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Abandons what runs and begins an epoch. prepare_next: the one after it will follow, in all likelihood, and its
  // first batches are filled while this one's last ones are used.
  Result<void> begin(const EpochStart& start, bool prepare_next);
  // kConfig in a child after fork(), where begin() was called before. Takes no lock.
  Result<void> check_process() const;
  void interrupt();  // see Loader
  // See Loader::give and Loader::end_giving.
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  void stop();

  // What was delivered of the epoch that runs or ran last.
  EpochStart position() const;
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
  std::string explain_late() const;   // what lists and padded fields take; empty: there are none

  struct Impl;  // defined in pipeline.cpp

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::pipeline
