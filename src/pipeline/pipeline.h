// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "feedline/loader.h"
#include "pipeline/bad_sample_policy.h"
#include "pipeline/pipeline_plan.h"
#include "pipeline/recipe.h"
#include "telemetry/stage_counters.h"

namespace feedline::device {
class Device;
}

namespace feedline::pipeline {

class CopyMemory;
class Epoch;
class Exchange;
class FunctionWatch;
class ReadAhead;
class VersionCheck;
struct Progress;

// What batches are filled for, where nobody says otherwise: the host.
std::shared_ptr<device::Device> usual_device();
// The GPU with that number, or the host. kConfig: there is none; the message says what to do.
Result<std::shared_ptr<device::Device>> device_of(std::optional<int> cuda_device);

// Threads that fill batches of one epoch after the other.
//
// Threads: begin, poll and stop belong to one caller at a time (the consumer); stats, bad_samples and position may be
// called by any. Worker threads start with the first begin() and end with stop() or the destructor. In a child after
// fork() the threads are gone, and whatever lock one of them held stays locked: begin and poll fail, stop, interrupt
// and the destructor do nothing, and all else must not be called where check_process() says so.
class Pipeline {
 public:
  // device: what batches are filled for.
  Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan,
           std::shared_ptr<device::Device> device = usual_device());
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Abandons what runs and begins an epoch. prepare_next: the one after it will follow, in all likelihood, and its
  // first batches are filled while this one's last ones are used. feeds_gpu: see EpochOptions.
  Result<void> begin(const EpochStart& start, bool prepare_next, bool feeds_gpu = false);
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
  // See Loader::rows_per_rank and Loader::changes.
  std::vector<std::uint64_t> rows_per_rank() const;
  std::uint64_t changes() const;
  std::vector<BadSample> bad_samples(std::uint64_t from = 0) const;
  std::uint64_t bad_count() const;
  LoaderStats stats() const;
  const PipelinePlan& plan() const { return plan_; }
  std::string explain_reads() const;   // empty: nothing is read ahead
  std::string explain_late() const;    // what lists and padded fields take; empty: there are none
  std::string explain_device() const;  // where batches go

 private:
  std::unique_ptr<Epoch> make_epoch(const EpochStart& start) const;
  Result<void> start_threads(bool feeds_gpu);
  void work(std::size_t worker);
  Result<void> check_given(const std::vector<GivenSample>& samples) const;
  bool is_of_a_parent() const;
  void end();
  void end_calls();
  void add_calls(LoaderStats& stats) const;
  void add_second_requests(LoaderStats& stats) const;

  // In this order, which is what depends on what: a thread that still runs at the end finds everything else alive.
  const std::shared_ptr<const Recipe> recipe_;
  const PipelinePlan plan_;
  const std::shared_ptr<device::Device> device_;
  const BadSamplePolicy policy_;
  std::vector<telemetry::ThreadCounters> counters_;      // one per worker, and the consumer's last
  std::vector<Progress> progress_;                       // one per worker
  std::vector<std::shared_ptr<FunctionWatch>> watches_;  // one per worker, where the recipe has a function
  std::unique_ptr<const CopyMemory> copy_memory_;        // of the budget, where a storage has a cache over it
  std::unique_ptr<ReadAhead> ahead_;                     // nullptr: the format has nothing to read ahead
  std::unique_ptr<VersionCheck> versions_;               // nullptr: all objects were asked about when they were opened
  std::unique_ptr<Exchange> exchange_;                   // the lock, and all that changes under it
  std::vector<base::Thread> threads_;                    // the consumer's
  std::atomic<pid_t> pid_ = 0;                           // of the process that began an epoch
};

}  // namespace feedline::pipeline
