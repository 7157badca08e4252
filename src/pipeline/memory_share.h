// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {

// The budget of a plan whose batches are laid out, and how much of it is for batches and for what is read ahead.
// asked_for: the user's budget in bytes, or 0. kConfig: it does not hold one batch.
Result<void> share_memory(const Recipe& recipe, std::uint64_t asked_for, PipelinePlan& plan);

}  // namespace feedline::pipeline
