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
#include "feedline/loader.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

namespace feedline {

struct Loader::Impl {
  Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, const LoaderOptions& options_in,
       pipeline::PipelinePlan plan_in, std::shared_ptr<device::Device> device);

  // Runs a call of any thread, unless in a child after fork().
  template <typename Call>
  auto asked(Call call) const {
    using Answer = decltype(call());
    return base::guarded([&]() -> Result<Answer> {
      FEEDLINE_CHECK_OK(pipeline.check_process());
      return call();
    });
  }

  Result<void> start_epoch(const EpochOptions& options);
  Result<std::optional<Batch>> next();
  Result<Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  Result<void> restore(const LoaderState& state);
  LoaderState state() const;
  void note_selection();  // after it has changed

  const std::shared_ptr<const pipeline::Recipe> recipe;
  const LoaderOptions options;  // as passed: the pipeline's plan has the resolved values
  const DatasetIdentity identity;
  pipeline::Pipeline pipeline;
  consumer::EpochSelection selection;
  const Schema schema;  // of delivered batches

  // Changed only by the consumer, under the mutex: state() may be called by any thread.
  mutable std::mutex mutex;
  bool resumed = false;                          // a restored state was started and has returned no batch yet
  bool running = false;                          // an epoch has begun and is not over
  EpochOptions epoch_options;                    // last argument of start_epoch()
  std::uint64_t next_epoch = 0;                  // the epoch that start_epoch() begins
  std::optional<pipeline::EpochStart> restored;  // or this position, once
  plan::Plan epoch_plan;                         // of a whole epoch
  std::atomic<std::uint64_t> batches;            // of epoch_plan; read without the mutex, also in a child after fork()
};

}  // namespace feedline
