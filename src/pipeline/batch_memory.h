// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of batches: taken when one is opened, laid out for its samples, given pages that the training loop has let
// go of while threads fill it, and, once it is final, mixed, composed and brought to the device.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "batch/composed.h"
#include "device/device.h"
#include "memory/allocator.h"
#include "pipeline/late_items.h"
#include "pipeline/pipeline_plan.h"
#include "pipeline/slot.h"

namespace feedline::pipeline {

// Any thread, and never under the pipeline's lock: memory comes from the kernel. Recipe and plan outlive it.
class BatchMemory {
 public:
  BatchMemory(const Recipe& recipe, const PipelinePlan& plan, std::shared_ptr<device::Device> device);

  // Before the first batch: as many blocks as there will be batches, where memory is slow to come by. An error: there
  // is not so much.
  Result<void> prepare() const;
  // A slot with memory for any batch of the plan. An error: there is none.
  Result<std::shared_ptr<Slot>> take();
  // Gives such a slot the layout of its samples, once it is placed.
  void lay_out(Slot& slot) const;

  // Has a final slot to be made ready? Where every field is dense and the batch stays as and where it was filled, it
  // has not.
  bool prepares() const { return late_fields_ > 0 || !device_->is_host() || plan_.mix; }
  // Mixes the rows of a slot of that epoch that is final, composes its late fields, lets the device begin with all that
  // goes there, and takes its items back. What fails is the slot's. Gives how much memory its late fields took on the
  // way.
  std::uint64_t make_ready(Slot& slot, std::uint64_t epoch);
  std::optional<MixStats> mix_stats() const;  // nullopt: nothing is mixed
  // By the items of late fields, of all slots and of those to come.
  std::uint64_t held_by_items() const { return items_.held_bytes(); }

  // Does the allocator have pages that nobody has asked it for on behalf of this slot?
  bool has_spare(const Slot& slot) const {
    const std::uint64_t spare = allocator_->spare_pages();
    return spare != 0 && spare != slot.seen_spare.load(std::memory_order_relaxed);
  }
  // Puts such pages under the rows that nobody has begun, which nobody can take meanwhile. For a thread that has rows
  // of the slot. false: there was nothing to do, or another thread is at it.
  bool reuse_pages(Slot& slot) const;

 private:
  void mix(Slot& slot, std::uint64_t epoch);
  Result<void> compose(Slot& slot) const;
  Result<void> begin(Slot& slot) const;
  Result<device::Begun> begin_arrays(Slot& slot) const;

  const Recipe& recipe_;
  const PipelinePlan& plan_;
  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<memory::Allocator> allocator_;  // of the device, for what is dense
  const batch::Composed::Memory late_memory_;
  const std::size_t late_fields_;
  LateItemPool items_;
  std::atomic<std::uint64_t> mixed_batches_{0}, mixed_rows_{0}, mixed_ns_{0};
};

}  // namespace feedline::pipeline
