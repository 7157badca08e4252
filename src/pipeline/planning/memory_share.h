// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cache/node/piece_memory.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {

// Sets the memory budget of a plan whose batches are laid out, and its shares for batches and read-ahead. asked_for:
// the user's budget in bytes, or 0. kConfig: the budget is too small for one batch.
Result<void> share_memory(const Recipe& recipe, std::uint64_t asked_for, PipelinePlan& plan);

// While this object exists, it reserves the plan's memory for copying shards in each cache.
class CopyMemory {
 public:
  CopyMemory(const Recipe& recipe, const PipelinePlan& plan);

 private:
  std::vector<cache::PieceMemory::Share> shares_;
};

}  // namespace feedline::pipeline
