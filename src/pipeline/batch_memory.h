// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of batches: taken when one is opened, laid out for its samples, and given pages that the training loop has
// let go of while threads fill it.

#include <cstdint>
#include <memory>

#include "memory/allocator.h"
#include "pipeline/pipeline_plan.h"
#include "pipeline/slot.h"

namespace feedline::pipeline {

// Any thread, and never under the pipeline's lock: memory comes from the kernel. Recipe and plan outlive it.
class BatchMemory {
 public:
  BatchMemory(const Recipe& recipe, const PipelinePlan& plan, std::shared_ptr<memory::Allocator> allocator)
      : recipe_(recipe), plan_(plan), allocator_(std::move(allocator)) {}

  // A slot with memory for any batch of the plan. An error: there is none.
  Result<std::shared_ptr<Slot>> take() const;
  // Gives such a slot the layout of its samples, once it is placed.
  void lay_out(Slot& slot) const;

  // Does the allocator have pages that nobody has asked it for on behalf of this slot?
  bool has_spare(const Slot& slot) const {
    const std::uint64_t spare = allocator_->spare_pages();
    return spare != 0 && spare != slot.seen_spare.load(std::memory_order_relaxed);
  }
  // Puts such pages under the rows that nobody has begun, which nobody can take meanwhile. For a thread that has rows
  // of the slot. false: there was nothing to do, or another thread is at it.
  bool reuse_pages(Slot& slot) const;

 private:
  const Recipe& recipe_;
  const PipelinePlan& plan_;
  const std::shared_ptr<memory::Allocator> allocator_;
};

}  // namespace feedline::pipeline
