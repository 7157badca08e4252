// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/memory_share.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/cpus.h"
#include "base/local_ranks.h"
#include "cache/node/cached_storage.h"
#include "format/format.h"

namespace feedline::pipeline {
namespace {

// The default budget is this fraction of the memory available to the process. A loader should not use all memory of a
// machine that also runs the model, the optimizer and other ranks.
constexpr std::uint64_t kMemoryShare = 8;
// One batch is filled while another waits. The unit of work is a row, so more batches would not help. Small batches are
// filled faster than a thread wakes up, so as many are used as fit in kSmallBatchesBytes.
constexpr std::uint64_t kDefaultSlots = 2;
constexpr std::uint64_t kSmallBatchesBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMostSmallBatches = 32;
// Multiplies the maximum number of batches if the training loop consumes in bursts and the controller sets the number
// of threads.
constexpr std::uint64_t kDeeper = 4;
// The memory for samples that are read ahead, enough for 256 photos. If batches leave less than kSomeReadAhead and less
// than an eighth of the budget, small batches use less memory.
constexpr std::uint64_t kMostReadAhead = std::uint64_t{32} << 20;
constexpr std::uint64_t kSomeReadAhead = std::uint64_t{4} << 20;
// For remote storage: the data of two round trips, 1.3 GB/s at 100 ms. Only as much as needed is used (read_depth.h),
// and an eighth of a user's budget is reserved for read-ahead.
constexpr std::uint64_t kMostFromFar = std::uint64_t{256} << 20;
// Shards that are copied to a cache may use this fraction of the budget, and at most the size of all pieces of two
// shards.
constexpr std::uint64_t kCopyShare = 8;
constexpr std::uint64_t kMostCopying = 2 * cache::kPiecesAtOnce * cache::kPieceBytes;
// Decompressed blocks may use this fraction of the budget.
constexpr std::uint64_t kBlockShare = 4;
// The assumed size of a row of a variable-size field if the format does not know it, until the first batch has been
// measured.
constexpr std::uint64_t kUnknownRowBytes = 1024;

// Returns the size of a batch's variable-size fields in bytes: each row as read, and its copy in the batch. unknown:
// the assumed size of rows whose size the format does not know.
std::uint64_t variable_bytes_of(const Recipe& recipe, std::uint64_t rows, std::uint64_t unknown) {
  std::uint64_t row_bytes = 0;
  for (const FieldSpec& field : recipe.schema)
    if (field.has_variable_size()) row_bytes += field.usual_bytes > 0 ? field.usual_bytes : unknown;
  return 2 * rows * row_bytes;
}

// Returns the storage backends that use a cache; there may be several if datasets are mixed.
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
  plan.variable_bytes = variable_bytes_of(recipe, plan.most_rows, kUnknownRowBytes);
  const std::uint64_t each = std::max<std::uint64_t>(plan.batch_bytes + plan.variable_bytes, 1);
  const std::uint64_t needed = plan.batch_bytes + variable_bytes_of(recipe, plan.most_rows, 0);
  plan.variable_is_guess = plan.batch_bytes + plan.variable_bytes > needed;
  const bool given = asked_for > 0;
  plan.memory_budget =
      given ? asked_for
            : base::usable_memory_bytes() / kMemoryShare / static_cast<std::uint64_t>(base::local_ranks().count);
  plan.budget_reason = given ? "memory_budget" : "two batches or 4 MiB, within an eighth of usable memory";
  if (plan.memory_budget < needed)
    return config_error(
        "loader: one batch needs " + std::string(needed > plan.batch_bytes ? "about " : "") + std::to_string(needed) +
        " bytes, but the memory budget is " + std::to_string(plan.memory_budget) +
        (given ? "; raise memory_budget or lower batch_size"
               : " (an eighth of the memory available to this process, shared by the ranks of this machine); lower "
                 "batch_size or set memory_budget"));
  if (!cached_storages(recipe).empty())
    plan.copy_bytes = std::min({kMostCopying, plan.memory_budget / kCopyShare, plan.memory_budget - needed});
  if (recipe.records)
    plan.block_bytes = std::min({recipe.records->block_bytes(), plan.memory_budget / kBlockShare,
                                 plan.memory_budget - plan.copy_bytes - needed});
  const std::uint64_t budget = plan.memory_budget - plan.copy_bytes - plan.block_bytes;  // for batches and read-ahead
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
