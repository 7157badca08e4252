// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/batch_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "batch/batch_layout.h"
#include "pipeline/fields/pixel_cache.h"
#include "pipeline/planning/batch_mix.h"
#include "pipeline/planning/device_postprocess.h"

namespace feedline::pipeline {
namespace {

// Text becomes Python objects, whatever the device.
batch::Composed::Memory variable_memory_of(device::Device& device) {
  return {device.variable_allocator(),
          device.is_host() ? device.variable_allocator() : device::host_device()->variable_allocator()};
}

}  // namespace

BatchMemory::BatchMemory(const Recipe& recipe, const PipelinePlan& plan, std::shared_ptr<device::Device> device)
    : recipe_(recipe),
      plan_(plan),
      device_(std::move(device)),
      allocator_(device_->allocator()),
      variable_memory_(variable_memory_of(*device_)),
      variable_fields_(static_cast<std::size_t>(std::ranges::count_if(recipe.schema, &FieldSpec::has_variable_size))),
      items_(variable_fields_ * plan.most_rows) {}

Result<void> BatchMemory::prepare() const {
  if (plan_.batch_bytes == 0) return {};
  return allocator_->prepare(plan_.batch_bytes, plan_.slots);
}

Result<std::shared_ptr<Slot>> BatchMemory::take() {
  auto slot = Slot::make(plan_.most_rows, prepares());
  // always the size of the largest batch: equal blocks can be reused, and untouched pages cost nothing
  if (plan_.batch_bytes > 0) {
    FEEDLINE_TRY(slot->lease, memory::Lease::take(allocator_, plan_.batch_bytes));
  }
  if (slot->prepared) slot->prepared->items = items_.take();
  return slot;
}

void BatchMemory::lay_out(Slot& slot) const {
  slot.layout = plan_.layouts.empty() ? std::make_shared<batch::BatchLayout>(
                                            schema_of(recipe_, slot.samples), slot.samples.size(), std::nullopt,
                                            plan_.postprocess ? plan_.postprocess->extra_bytes(slot.samples.size()) : 0)
                                      : plan_.layouts[slot.bucket];
  FEEDLINE_CHECK(slot.layout->bytes() <= plan_.batch_bytes);
}

std::uint64_t BatchMemory::make_ready(Slot& slot, std::uint64_t epoch) {
  Slot::Prepared& prepared = *slot.prepared;
  if (plan_.mix) mix(slot, epoch);
  Result<void> made = compose(slot);
  std::uint64_t variable_bytes = prepared.composed.bytes();
  if (prepared.items) {
    variable_bytes += prepared.items->tidy();
    items_.give_back(std::move(prepared.items));
  }
  if (made) made = begin(slot);
  if (!made) prepared.error = std::move(made).error();
  return variable_bytes;
}

// Mixes in place. The random draws depend on the number of the batch in its epoch, and differ between ranks.
void BatchMemory::mix(Slot& slot, std::uint64_t epoch) {
  const std::uint64_t started = base::now_ns();
  const std::uint64_t number = slot.plan->index_of(slot.batch) * plan_.ranks.world_size + plan_.ranks.rank;
  const base::SampleKey key{plan_.order.seed, epoch, number};
  slot.prepared->mixed = plan_.mix->mix(*slot.layout, slot.lease->data(), slot.rows, key);
  slot.prepared->used_up = slot.rows - plan_.mix->rows_of(slot.rows);
  mixed_batches_.fetch_add(1, std::memory_order_relaxed);
  mixed_rows_.fetch_add(slot.rows, std::memory_order_relaxed);
  mixed_ns_.fetch_add(base::now_ns() - started, std::memory_order_relaxed);
}

std::optional<MixStats> BatchMemory::mix_stats() const {
  if (!plan_.mix) return std::nullopt;
  return MixStats{mixed_batches_.load(std::memory_order_relaxed), mixed_rows_.load(std::memory_order_relaxed),
                  static_cast<double>(mixed_ns_.load(std::memory_order_relaxed)) * 1e-9};
}

Result<void> BatchMemory::compose(Slot& slot) const {
  if (variable_fields_ == 0) return {};
  const std::span items(slot.prepared->items->all);
  for (const BadEntry& bad : slot.failures)  // it may be half written
    for (memory::ListItem& item : items.subspan(bad.row * variable_fields_, variable_fields_)) item.clear();
  FEEDLINE_TRY(slot.prepared->composed,
               batch::Composed::make(*slot.layout, items, slot.rows - slot.prepared->used_up, variable_memory_));
  return {};
}

Result<void> BatchMemory::begin(Slot& slot) const {
  if (device_->is_host()) return {};
  if (slot.lease) {
    FEEDLINE_TRY(auto begun, begin_arrays(slot));
    slot.lease = std::move(begun.memory);
    slot.prepared->arrivals[0] = std::move(begun.ready);
  }
  batch::Composed& composed = slot.prepared->composed;
  if (composed.arrays()) {
    FEEDLINE_TRY(auto begun, device_->begin(composed.take_arrays()));
    composed.set_arrays(std::move(begun.memory));
    slot.prepared->arrivals[1] = std::move(begun.ready);
  }
  return {};
}

Result<device::Begun> BatchMemory::begin_arrays(Slot& slot) const {
  if (!plan_.postprocess) return device_->begin(std::move(slot.lease));
  slot.delivered = plan_.postprocess->delivered(*slot.layout);
  for (const BadEntry& bad : slot.failures) plan_.postprocess->clear_row(*slot.layout, slot.lease->data(), bad.row);
  device::Finish finish = plan_.postprocess->finish(
      *slot.layout, slot.lease->data(), slot.rows - slot.prepared->used_up, slot.rows, slot.prepared->mixed);
  if (recipe_.cache) finish.resident = recipe_.cache->device_images();
  finish.decoded = recipe_.decoder;
  return device_->begin_making(std::move(slot.lease), finish);
}

bool BatchMemory::reuse_pages(Slot& slot) const {
  const std::uint64_t spare = allocator_->spare_pages();
  std::uint64_t seen = slot.seen_spare.load(std::memory_order_relaxed);
  if (spare == 0 || spare == seen || !slot.lease) return false;
  if (!slot.seen_spare.compare_exchange_strong(seen, spare, std::memory_order_relaxed)) return false;
  const auto row = slot.tickets.pause();
  if (!row) return false;
  const auto [first, last] = slot.layout->largest_field_from(*row);
  allocator_->reuse_pages(slot.lease->data(), first, last);
  slot.tickets.resume(*row);
  return true;
}

}  // namespace feedline::pipeline
