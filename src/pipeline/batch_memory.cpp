// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_memory.h"

#include "base/check.h"
#include "batch/batch_layout.h"

namespace feedline::pipeline {

Result<std::shared_ptr<Slot>> BatchMemory::take() const {
  auto slot = Slot::make(plan_.batch_size);
  // always what the largest batch takes: blocks of one size go round, and pages that nobody writes cost nothing
  FEEDLINE_TRY(slot->lease, memory::Lease::take(allocator_, plan_.batch_bytes));
  return slot;
}

void BatchMemory::lay_out(Slot& slot) const {
  slot.layout = plan_.layouts.empty()
                    ? std::make_shared<batch::BatchLayout>(schema_of(recipe_, slot.samples), slot.samples.size())
                    : plan_.layouts[slot.bucket];
  FEEDLINE_CHECK(slot.layout->bytes() <= plan_.batch_bytes);
}

bool BatchMemory::reuse_pages(Slot& slot) const {
  const std::uint64_t spare = allocator_->spare_pages();
  std::uint64_t seen = slot.seen_spare.load(std::memory_order_relaxed);
  if (spare == 0 || spare == seen) return false;
  if (!slot.seen_spare.compare_exchange_strong(seen, spare, std::memory_order_relaxed)) return false;
  const auto row = slot.tickets.pause();
  if (!row) return false;
  const auto [first, last] = slot.layout->largest_field_from(*row);
  allocator_->reuse_pages(slot.lease->data(), first, last);
  slot.tickets.resume(*row);
  return true;
}

}  // namespace feedline::pipeline
