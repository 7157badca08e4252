// SPDX-License-Identifier: Apache-2.0
#include "pipeline/memory_share.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/cpus.h"
#include "base/local_ranks.h"
#include "cache/node/cached_storage.h"
#include "format/format.h"

namespace feedline::pipeline {
namespace {

// Without a budget of the user's: of the memory that this process may use. A loader should not be what fills a
// machine that also holds the model, the optimizer and other ranks.
constexpr std::uint64_t kMemoryShare = 8;
// One batch being filled and one waiting: with rows, not batches, as the unit of work, more smooths nothing. Small
// batches are filled faster than a thread wakes up: of those, as many as this much memory holds.
constexpr std::uint64_t kDefaultSlots = 2;
constexpr std::uint64_t kSmallBatchesBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMostSmallBatches = 32;
// Where the training loop comes in bursts, and the number of threads is the controller's, at most so many times that.
constexpr std::uint64_t kDeeper = 4;
// For samples that are read ahead: 256 photos. Where a given budget leaves less than the second number, and less than
// an eighth of it, small batches give up theirs for it.
constexpr std::uint64_t kMostReadAhead = std::uint64_t{32} << 20;
constexpr std::uint64_t kSomeReadAhead = std::uint64_t{4} << 20;
// Over a network, what comes in two round trips: 1.3 GB/s at 100 ms. It is held as far as it is needed (read_depth.h),
// and a given budget leaves an eighth of it.
constexpr std::uint64_t kMostFromFar = std::uint64_t{256} << 20;
// Shards that come into a cache take so large a part of it, and no more than two of them with all their pieces.
constexpr std::uint64_t kCopyShare = 8;
constexpr std::uint64_t kMostCopying = 2 * cache::kPiecesAtOnce * cache::kPieceBytes;
// Of a row of a late field whose format does not know how long its rows are. What they take is seen with the first
// batch, and heeded from then on.
constexpr std::uint64_t kUnknownRowBytes = 1024;

// Of the late fields of a batch: each row as it was read, and once more in its place. unknown: of a row of which the
// format says nothing.
std::uint64_t late_bytes_of(const Recipe& recipe, std::uint64_t rows, std::uint64_t unknown) {
  std::uint64_t row_bytes = 0;
  for (const FieldSpec& field : recipe.schema)
    if (field.is_late()) row_bytes += field.usual_bytes > 0 ? field.usual_bytes : unknown;
  return 2 * rows * row_bytes;
}

// Several where datasets are mixed.
std::vector<std::shared_ptr<const cache::CachedStorage>> cached_storages(const Recipe& recipe) {
  std::vector<std::shared_ptr<const cache::CachedStorage>> cached;
  if (!recipe.records) return cached;
  for (const auto& storage : recipe.records->storages())
    if (auto with_cache = std::dynamic_pointer_cast<const cache::CachedStorage>(storage))
      cached.push_back(std::move(with_cache));
  return cached;
}

}  // namespace

Result<void> share_memory(const Recipe& recipe, std::uint64_t asked_for, PipelinePlan& plan) {
  plan.late_bytes = late_bytes_of(recipe, plan.most_rows, kUnknownRowBytes);
  const std::uint64_t each = std::max<std::uint64_t>(plan.batch_bytes + plan.late_bytes, 1);
  const std::uint64_t needed = plan.batch_bytes + late_bytes_of(recipe, plan.most_rows, 0);
  plan.late_is_guess = plan.batch_bytes + plan.late_bytes > needed;
  const bool given = asked_for > 0;
  plan.memory_budget =
      given ? asked_for
            : base::usable_memory_bytes() / kMemoryShare / static_cast<std::uint64_t>(base::local_ranks().count);
  plan.budget_reason = given ? "memory_budget" : "two batches or 4 MiB, within an eighth of usable memory";
  if (plan.memory_budget < needed)
    return config_error(
        "loader: one batch takes " + std::string(needed > plan.batch_bytes ? "about " : "") + std::to_string(needed) +
        " bytes, the memory budget is " + std::to_string(plan.memory_budget) +
        (given ? "; raise memory_budget or lower batch_size"
               : " (an eighth of the memory that this process may use, shared by the ranks of this machine); lower "
                 "batch_size or set memory_budget"));
  if (!cached_storages(recipe).empty())
    plan.copy_bytes = std::min({kMostCopying, plan.memory_budget / kCopyShare, plan.memory_budget - needed});
  const std::uint64_t budget = plan.memory_budget - plan.copy_bytes;  // of batches, and of what is read ahead
  plan.slots = std::max<std::uint64_t>(budget / each, 1);
  if (!given)
    plan.slots = std::min(plan.slots, std::clamp(kSmallBatchesBytes / each, kDefaultSlots, kMostSmallBatches));
  if (recipe.records && recipe.records->storage() != nullptr) {
    const bool is_far = recipe.records->storage()->joins_reads();
    const std::uint64_t some = std::min(is_far ? kMostFromFar : kSomeReadAhead, budget / 8);
    const auto left = [&] { return budget - std::min(budget, plan.slots * each); };
    if (left() < some && (each <= some || (is_far && plan.slots > kDefaultSlots)))
      plan.slots = std::max(kDefaultSlots, (budget - some) / each);
    plan.read_ahead_bytes = std::min(left(), is_far ? kMostFromFar : kMostReadAhead);
  }
  plan.most_slots = plan.slots;
  if (plan.adapts && !given)
    plan.most_slots = std::clamp(plan.bytes_for_batches() / each, plan.slots, kDeeper * plan.slots);
  return {};
}

CopyMemory::CopyMemory(const Recipe& recipe, const PipelinePlan& plan) {
  const auto cached = cached_storages(recipe);
  for (const auto& storage : cached)
    shares_.push_back(storage->piece_memory().set_aside(plan.copy_bytes / cached.size()));
}

}  // namespace feedline::pipeline
