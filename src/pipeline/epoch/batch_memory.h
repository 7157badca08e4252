// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of batches: allocated when a batch is opened, and laid out for its samples. While threads fill a batch,
// its memory is backed by pages that the training loop has released. A final batch is mixed, composed and transferred
// to the device.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "batch/composed.h"
#include "device/device.h"
#include "memory/allocator.h"
#include "pipeline/epoch/slot.h"
#include "pipeline/epoch/variable_size_items.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {

// Thread-safe. Must not be called under the pipeline's lock, because memory is allocated from the kernel. The recipe
// and the plan must outlive this object.
class BatchMemory {
 public:
  BatchMemory(const Recipe& recipe, const PipelinePlan& plan, std::shared_ptr<device::Device> device);

  // Allocates a block for each batch in flight before the first batch, if allocation is slow. Returns an error if
  // memory is insufficient.
  Result<void> prepare() const;
  // Returns a slot with memory for any batch of the plan, or an error if none is available.
  Result<std::shared_ptr<Slot>> take();
  // Computes the layout for the slot's samples; call it after assigning the slot.
  void lay_out(Slot& slot) const;

  // Returns whether final slots need make_ready(). Slots do not need it if every field is dense, the batch is delivered
  // in the memory where it was filled, and nothing is mixed.
  bool prepares() const { return variable_fields_ > 0 || !device_->is_host() || plan_.mix; }
  // Mixes the rows of a final slot of this epoch, composes its variable-size fields, starts device work, and recycles
  // its items. Errors are stored in the slot. Returns the size of the extra memory that the slot's variable-size fields
  // needed, in bytes.
  std::uint64_t make_ready(Slot& slot, std::uint64_t epoch);
  std::optional<MixStats> mix_stats() const;  // nullopt if nothing is mixed
  // Returns the bytes held by items of variable-size fields, in all slots and in the pool.
  std::uint64_t held_by_items() const { return items_.held_bytes(); }

  // Returns whether the allocator has spare pages that have not been requested for this slot yet.
  bool has_spare(const Slot& slot) const {
    const std::uint64_t spare = allocator_->spare_pages();
    return spare != 0 && spare != slot.seen_spare.load(std::memory_order_relaxed);
  }
  // Maps spare pages into rows that no thread has started, and blocks these rows until the pages are mapped. The
  // calling thread must have taken rows of the slot. Returns false if there was nothing to do or another thread is
  // doing it.
  bool reuse_pages(Slot& slot) const;

 private:
  void mix(Slot& slot, std::uint64_t epoch);
  Result<void> compose(Slot& slot) const;
  Result<void> begin(Slot& slot) const;
  Result<device::Begun> begin_arrays(Slot& slot) const;

  const Recipe& recipe_;
  const PipelinePlan& plan_;
  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<memory::Allocator> allocator_;  // the device's allocator, for dense fields
  const batch::Composed::Memory variable_memory_;
  const std::size_t variable_fields_;
  VariableSizeItemPool items_;
  std::atomic<std::uint64_t> mixed_batches_{0}, mixed_rows_{0}, mixed_ns_{0};
};

}  // namespace feedline::pipeline
