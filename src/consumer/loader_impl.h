// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/guarded.h"
#include "feedline/loader.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

namespace feedline {

struct Loader::Impl {
  Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, const LoaderOptions& options_in,
       pipeline::PipelinePlan plan_in, std::shared_ptr<device::Device> device);

  // What a call of any thread does, unless it is made in a child after fork().
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

  const std::shared_ptr<const pipeline::Recipe> recipe;
  const LoaderOptions options;  // as they were passed: what came of them is in the pipeline's plan
  const DatasetIdentity identity;
  pipeline::Pipeline pipeline;
  const plan::Plan epoch_plan;  // of a whole epoch
  const Schema schema;          // of what is delivered

  // Changed by the consumer alone, and under it: state() is for any thread.
  mutable std::mutex mutex;
  bool resumed = false;                          // a restored state was begun and has given no batch yet
  bool running = false;                          // an epoch is begun and not over
  EpochOptions epoch_options;                    // what start_epoch() was told last
  std::uint64_t next_epoch = 0;                  // what start_epoch() begins
  std::optional<pipeline::EpochStart> restored;  // or this, once
};

}  // namespace feedline
