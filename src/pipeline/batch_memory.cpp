// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_memory.h"

#include "base/check.h"
#include "batch/batch_layout.h"

namespace feedline::pipeline {

Result<std::shared_ptr<memory::Lease>> BatchMemory::take() const {
  // always what the largest batch takes: blocks of one size go round, and pages that nobody writes cost nothing
  return memory::Lease::take(allocator_, plan_.batch_bytes);
}

void BatchMemory::lay_out(Slot& slot) const {
  slot.layout = plan_.layouts.empty()
                    ? std::make_shared<batch::BatchLayout>(schema_of(recipe_, slot.samples), slot.samples.size())
                    : plan_.layouts[slot.bucket];
  FEEDLINE_CHECK(slot.layout->bytes() <= plan_.batch_bytes);
}

void BatchMemory::reuse_pages(Slot& slot) const {
  const std::uint64_t spare = allocator_->spare_pages();
  if (spare == 0 || spare == slot.seen_spare.load(std::memory_order_relaxed)) return;
  slot.seen_spare.store(spare, std::memory_order_relaxed);
  const std::uint64_t row = slot.tickets.pause();
  const auto [first, last] = slot.layout->largest_field_from(row);
  if (row < slot.rows) allocator_->reuse_pages(slot.lease->data(), first, last);
  slot.tickets.resume(row);
}

}  // namespace feedline::pipeline
