// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cache/node/piece_memory.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {

// The budget of a plan whose batches are laid out, and how much of it is for batches and for what is read ahead.
// asked_for: the user's budget in bytes, or 0. kConfig: it does not hold one batch.
Result<void> share_memory(const Recipe& recipe, std::uint64_t asked_for, PipelinePlan& plan);

// What the plan has for shards on their way into caches: each cache's memory counts it for as long as this lives.
class CopyMemory {
 public:
  CopyMemory(const Recipe& recipe, const PipelinePlan& plan);

 private:
  std::vector<cache::PieceMemory::Share> shares_;
};

}  // namespace feedline::pipeline
