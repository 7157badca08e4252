// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/guarded.h"
#include "consumer/epoch_selection.h"
#include "consumer/pack_feed.h"
#include "feedline/loader.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

namespace feedline {

// The state of a loader between calls. It is separate so that the public header does not include the pipeline.
struct Loader::Impl {
  Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, const LoaderOptions& options_in,
       pipeline::PipelinePlan plan_in, std::shared_ptr<device::Device> device);
  // For packed sequences. identity: that of the documents.
  Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, const LoaderOptions& options_in,
       pipeline::PipelinePlan plan_in, std::shared_ptr<device::Device> device, DatasetIdentity identity_in,
       std::unique_ptr<consumer::PackFeed> packs_in);

  // Runs a call on any thread, unless this is a child after fork().
  template <typename Call>
  auto asked(Call call) const {
    using Answer = decltype(call());
    return base::guarded([&]() -> Result<Answer> {
      FEEDLINE_CHECK_OK(pipeline.check_process());
      return call();
    });
  }

  Result<void> start_epoch(const EpochOptions& options);
  Result<Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  Result<void> restore(const LoaderState& state);
  LoaderState state() const;
  void note_selection();  // after it has changed

  // The same functions for packed sequences; see packed_loader.cpp.
  Result<void> start_packs(const EpochOptions& given);
  Result<void> give_packs();
  std::uint64_t packs_delivered() const;
  Result<Polled> poll_packs(std::chrono::milliseconds wait, Batch& batch);
  void add_packs(LoaderState& state) const;  // Requires: the mutex is held.
  Result<void> restore_packs(const LoaderState& state);

  const std::shared_ptr<const pipeline::Recipe> recipe;
  const LoaderOptions options;  // as passed: the pipeline's plan has the resolved values
  const DatasetIdentity identity;
  pipeline::Pipeline pipeline;
  const std::unique_ptr<consumer::PackFeed> packs;  // nullptr: samples are not packed
  consumer::EpochSelection selection;
  const Schema schema;  // of delivered batches

  // Only the consumer changes the members below, under the mutex, because any thread may call state().
  mutable std::mutex mutex;
  bool resumed = false;                                  // a restored state was started and has returned no batch yet
  bool running = false;                                  // an epoch has begun and is not over
  EpochOptions epoch_options;                            // last argument of start_epoch()
  std::uint64_t next_epoch = 0;                          // the epoch that start_epoch() begins
  std::optional<pipeline::EpochStart> restored;          // or this position, once
  std::optional<consumer::PackPosition> restored_packs;  // the same for packed sequences
  bool all_given = false;                                // the epoch's last batch was given to the pipeline
  plan::Plan epoch_plan;                                 // of a whole epoch
  std::atomic<std::uint64_t> batches;  // of epoch_plan; read without the mutex, also in a child after fork()
};

}  // namespace feedline
