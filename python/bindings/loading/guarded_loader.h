// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread-safe Loader for Python: calls that the engine allows on only one thread at a time wait for each other, never
// with the GIL held. All methods require the GIL, and release it while they work. In a child after fork() every method
// but close() raises feedline.ConfigError if the parent had started an epoch.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "feedline/loader.h"

namespace feedline::python {

class GuardedLoader {
 public:
  explicit GuardedLoader(Loader loader);
  ~GuardedLoader();  // closes; threads may need the GIL, so it must not be held while joining them
  GuardedLoader(const GuardedLoader&) = delete;
  GuardedLoader& operator=(const GuardedLoader&) = delete;

  // The next batch of the run that start_epoch() returned, or of the latest run; nullopt: its epoch is over, or it is
  // not the latest, so no thread gets a batch of an epoch that another thread has started. Checks Python's signals at
  // least every 100 ms, and throws nanobind::python_error if a handler raised.
  Result<std::optional<Batch>> next(std::optional<std::uint64_t> run = {});
  // Returns the number of this run through an epoch.
  Result<std::uint64_t> start_epoch(const EpochOptions& options);
  // The number of the latest run, which restore() ends.
  std::uint64_t run() const { return run_; }
  void set_epoch(std::uint64_t epoch);
  Result<void> set_sampling(std::shared_ptr<const Sampling> sampling);
  Result<void> set_mix_weights(const std::vector<double>& weights);
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  std::uint64_t epoch();
  std::uint64_t next_epoch();
  Result<void> restore(const LoaderState& state);
  Result<LoaderState> state();
  void close();

  // The sample indexes of the batch that next_arrays() returned last. Computed on request: most callers do not need
  // them, and building a Python list takes longer than a small batch.
  std::vector<std::uint64_t> last_samples;

  const Schema& schema() const { return loader_.schema(); }
  std::uint64_t batches() const;  // of packed sequences: counted from the lengths of the epoch's documents
  Result<std::optional<PackSegments>> segments(const Batch& batch);
  Result<std::uint64_t> batches_in(std::uint64_t epoch);
  Result<PackCounts> pack_counts(std::uint64_t epoch, std::optional<std::uint64_t> windows);
  Result<std::vector<std::uint64_t>> rows_per_rank();
  Result<LoaderStats> stats();
  Result<std::vector<BadSample>> errors();
  Result<std::vector<BadSample>> take_errors();  // errors since the last call
  // Whether take_errors() has anything to return, as of the last next().
  bool has_errors() const { return has_errors_; }
  Result<std::string> warning() const { return loader_.warning(); }
  Result<std::string> explain();
  // Lock-free: called after every batch.
  std::uint64_t changes() const { return loader_.changes(); }

 private:
  template <typename F>
  auto alone(F call);
  void refuse_child() const;

  Loader loader_;
  std::mutex mutex_;
  std::atomic<bool> closing_ = false;
  std::atomic<std::uint64_t> run_ = 0;    // written under mutex_
  bool is_over_ = true;                   // whether the latest run's epoch is over; guarded by mutex_
  std::atomic<pid_t> started_in_ = 0;     // the process whose threads fill the batches; 0: none yet
  std::uint64_t taken_ = 0;               // number of errors that take_errors() has returned
  std::atomic<bool> has_errors_ = false;  // written under mutex_
};

}  // namespace feedline::python
