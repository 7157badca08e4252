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
#include "pipeline/epoch/bad_sample_policy.h"
#include "pipeline/planning/pipeline_plan.h"
#include "pipeline/sample/recipe.h"
#include "telemetry/stage_counters.h"

namespace feedline::device {
class Device;
}

namespace feedline::pipeline {

class ClipAhead;
class CopyMemory;
class Epoch;
class BatchScheduler;
class FunctionWatch;
class ReadAhead;
class VideoDecoders;
class VersionCheck;
struct Progress;

// Returns the default device, which is the host.
std::shared_ptr<device::Device> usual_device();
// Returns the GPU with that number, or the host if there is no number. kConfig: there is no such GPU; the message
// suggests a fix.
Result<std::shared_ptr<device::Device>> device_of(std::optional<int> cuda_device);

// Worker threads that fill the batches of successive epochs.
//
// Threads: only one caller at a time (the consumer) may call begin, poll and stop; any thread may call stats,
// bad_samples and position. Worker threads start with the first begin() and end in stop() or the destructor. In a child
// after fork(), the threads do not exist, and locks that they held stay locked: begin and poll return errors; stop,
// interrupt and the destructor do nothing; no other function may be called if check_process() returns an error.
class Pipeline {
 public:
  // device: receives the batches.
  Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan,
           std::shared_ptr<device::Device> device = usual_device());
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Abandons the current epoch and begins another. prepare_next: the next epoch will probably follow, so its first
  // batches are filled while the last ones of this epoch are used. feeds_gpu: see EpochOptions.
  Result<void> begin(const EpochStart& start, bool prepare_next, bool feeds_gpu = false);
  // Returns kConfig in a child after fork() if begin() was called before. Takes no lock.
  Result<void> check_process() const;
  void interrupt();  // see Loader
  // See Loader::give and Loader::end_giving.
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  void stop();

  // Returns the position in the current epoch, or in the last one.
  EpochStart position() const;
  // Returns whether any rank has a batch in the current epoch.
  bool has_batches() const;
  // See Loader::rows_per_rank and Loader::changes.
  std::vector<std::uint64_t> rows_per_rank() const;
  std::uint64_t changes() const;
  std::vector<BadSample> bad_samples(std::uint64_t from = 0) const;
  std::uint64_t bad_count() const;
  LoaderStats stats() const;
  const PipelinePlan& plan() const { return plan_; }
  std::string explain_reads() const;          // empty: no read-ahead
  std::string explain_variable_size() const;  // memory of lists and padded fields; empty if there are none
  std::string explain_device() const;         // destination of batches

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

  // Members are in the order of their dependencies, so that all other members exist while a thread still runs during
  // destruction.
  const std::shared_ptr<const Recipe> recipe_;
  const PipelinePlan plan_;
  const std::shared_ptr<device::Device> device_;
  const BadSamplePolicy policy_;
  std::vector<telemetry::ThreadCounters> counters_;      // one per worker, then the consumer's
  std::vector<Progress> progress_;                       // one per worker
  std::vector<std::shared_ptr<FunctionWatch>> watches_;  // one per worker, if the recipe has a function
  std::shared_ptr<VideoDecoders> decoders_;              // nullptr: no clips
  std::unique_ptr<const CopyMemory> copy_memory_;        // part of the budget, if a storage backend is cached
  std::unique_ptr<ReadAhead> ahead_;                     // nullptr: the format does not support read-ahead
  std::unique_ptr<ClipAhead> clips_;                     // nullptr: no clips, or their storage is not remote
  std::unique_ptr<VersionCheck> versions_;               // nullptr: all objects were checked when opened
  std::unique_ptr<BatchScheduler> scheduler_;            // the lock and all state under it
  std::vector<base::Thread> threads_;                    // the consumer's
  std::atomic<pid_t> pid_ = 0;                           // process that began an epoch
};

}  // namespace feedline::pipeline
