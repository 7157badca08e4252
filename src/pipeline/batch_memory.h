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

// Not thread-safe: under the pipeline's lock, but for has_spare(). Recipe and plan outlive it.
class BatchMemory {
 public:
  BatchMemory(const Recipe& recipe, const PipelinePlan& plan, std::shared_ptr<memory::Allocator> allocator)
      : recipe_(recipe), plan_(plan), allocator_(std::move(allocator)) {}

  // For any batch of the plan. An error: there is none.
  Result<std::shared_ptr<memory::Lease>> take() const;
  // Gives a slot that was opened in such memory the layout of its samples.
  void lay_out(Slot& slot) const;

  // Does the allocator have pages that nobody has asked it for on behalf of this slot? Any thread that has rows of it.
  bool has_spare(const Slot& slot) const {
    const std::uint64_t spare = allocator_->spare_pages();
    return spare != 0 && spare != slot.seen_spare.load(std::memory_order_relaxed);
  }
  // Puts such pages under the rows that nobody has begun.
  void reuse_pages(Slot& slot) const;

 private:
  const Recipe& recipe_;
  const PipelinePlan& plan_;
  const std::shared_ptr<memory::Allocator> allocator_;
};

}  // namespace feedline::pipeline
