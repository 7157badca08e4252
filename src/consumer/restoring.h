// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a state fits a loader, so that resuming produces the batches of an uninterrupted run.

#include <cstdint>

#include "feedline/loader.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::consumer {

DatasetIdentity identity_of(const pipeline::Recipe& recipe, std::uint64_t shard_window);
// See DatasetIdentity::blocks.
std::uint64_t blocks_of(const pipeline::Source& source, std::uint64_t shard_window);

// kConfig: the state was saved with another dataset, or with options that change the meaning of positions.
Result<void> check_identity(const LoaderState& state, const DatasetIdentity& now, Fidelity fidelity,
                            const pipeline::PipelinePlan& plan);
// Returns the position at which the epoch resumes. Requires: the plan has the state's sample selection. kConfig: the
// state is damaged.
Result<pipeline::EpochStart> start_of(const LoaderState& state, const pipeline::PipelinePlan& plan);

}  // namespace feedline::consumer
