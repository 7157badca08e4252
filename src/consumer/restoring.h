// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a state fits a loader: whoever goes on with it gets what would have come.

#include "feedline/loader.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::consumer {

DatasetIdentity identity_of(const pipeline::Recipe& recipe);

// Where the epoch begins that goes on from `state`. kConfig: taken on another dataset, with other options that decide
// what a position is, or damaged.
Result<pipeline::EpochStart> start_of(const LoaderState& state, const DatasetIdentity& now, Fidelity fidelity,
                                      const pipeline::PipelinePlan& plan);

}  // namespace feedline::consumer
