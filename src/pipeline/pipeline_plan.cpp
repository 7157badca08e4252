// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline_plan.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cpus.h"
#include "batch/batch_layout.h"
#include "format/format.h"
#include "pipeline/bucketing.h"
#include "pipeline/thread_placement.h"

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
// Of a row of a late field whose format does not know how long its rows are. What they take is seen with the first
// batch, and heeded from then on.
constexpr std::uint64_t kUnknownRowBytes = 1024;
// More threads than this are a mistake, not a wish.
constexpr int kMaxThreads = 1024;

Result<void> check_options(const LoaderOptions& options) {
  if (options.batch_size == 0 && options.max_tokens == 0) return config_error("loader: batch_size must be at least 1");
  if (options.num_workers < 0 || options.num_workers > kMaxThreads)
    return config_error("loader: num_workers must be between 0 and " + std::to_string(kMaxThreads) + ", got " +
                        std::to_string(options.num_workers));
  if (options.most_workers < 0) return config_error("loader: most_workers must not be negative");
  if (options.world_size == 0) return config_error("loader: world_size must be at least 1");
  if (options.rank >= options.world_size)
    return config_error("loader: rank must be below world_size=" + std::to_string(options.world_size) + ", got " +
                        std::to_string(options.rank));
  if (options.timeout.count() < 0) return config_error("loader: timeout must not be negative");
  return {};
}

// A batch is laid out for the samples that the plan puts into it: another one may be longer.
Result<void> check_ragged(const LoaderOptions& options) {
  const auto refuse = [](const std::string& option) {
    return config_error("loader: " + option + " does not go with samples of different lengths; use on_error=\"raise\"");
  };
  if (options.on_error == OnError::kSkip) return refuse("on_error=\"skip\"");
  if (options.on_error == OnError::kReplace) return refuse("on_error=\"replace\"");
  return {};
}

Result<plan::OrderConfig> order_config(const Recipe& recipe, const LoaderOptions& options) {
  plan::OrderConfig order;
  order.size = recipe.format->size();
  order.shuffle = options.shuffle;
  order.seed = options.seed;
  order.mixture = recipe.mixture;
  if (options.given_order && options.buckets == 0 && options.bucket_bounds.empty()) return order;
  const std::uint64_t positions = order.mixture ? order.mixture->samples : order.size;
  if (positions < options.world_size)
    return config_error("loader: world_size=" + std::to_string(options.world_size) + " is more than the " +
                        std::to_string(positions) + " samples of an epoch: a rank would have none");
  FEEDLINE_TRY(order.buckets, make_buckets(recipe, options));
  if (options.shard_window == 0) return order;
  if (!options.shuffle) return config_error("loader: a window of shards is for shuffling them");
  if (order.mixture) return config_error("loader: a mixture is shuffled as a whole, not by shards");
  order.shard_window = options.shard_window;
  order.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(recipe.format->shard_ends());
  return order;
}

Result<std::shared_ptr<const batch::BatchLayout>> layout_of(Schema schema, std::uint64_t rows) {
  std::uint64_t row_bytes = 0;
  for (const FieldSpec& field : schema) row_bytes += field.is_late() ? field.usual_bytes : field.array.bytes();
  if (rows > (std::uint64_t{1} << 48) / std::max<std::uint64_t>(row_bytes, 1))
    return config_error("loader: a batch of " + std::to_string(rows) + " samples is over 256 TiB");
  return std::make_shared<const batch::BatchLayout>(std::move(schema), rows);
}

// Of the late fields of a batch: each row as it was read, and once more in its place. unknown: of a row of which the
// format says nothing.
std::uint64_t late_bytes_of(const Recipe& recipe, std::uint64_t rows, std::uint64_t unknown) {
  std::uint64_t row_bytes = 0;
  for (const FieldSpec& field : recipe.schema)
    if (field.is_late()) row_bytes += field.usual_bytes > 0 ? field.usual_bytes : unknown;
  return 2 * rows * row_bytes;
}

// Which shapes batches have, and what the largest takes.
Result<void> lay_out(const Recipe& recipe, PipelinePlan& plan) {
  if (!plan.order.buckets) {
    FEEDLINE_TRY(auto layout, layout_of(longest_schema(recipe), plan.options.batch_size));
    plan.batch_bytes = layout->bytes();
    if (!recipe.ragged) plan.layouts.push_back(std::move(layout));
    return {};
  }
  plan.options.batch_size = 0;
  for (const Bucket& bucket : plan.order.buckets->all()) {
    const std::uint64_t rows = bucket.rows / plan.options.world_size;
    FEEDLINE_TRY(auto layout, layout_of(schema_of_length(recipe, bucket.bound), rows));
    plan.options.batch_size = std::max(plan.options.batch_size, rows);
    plan.batch_bytes = std::max<std::uint64_t>(plan.batch_bytes, layout->bytes());
    plan.layouts.push_back(std::move(layout));
  }
  return {};
}

}  // namespace

plan::Plan whole_epoch(const PipelinePlan& plan, std::uint64_t epoch) {
  const LoaderOptions& o = plan.options;
  return {plan::make_order(plan.order, epoch), {o.batch_size, o.rank, o.world_size, o.drop_last, o.uneven, 0, {}, 0}};
}

Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options) {
  FEEDLINE_CHECK_OK(check_options(options));
  if (recipe.format->size() == 0) return config_error("loader: the dataset \"" + recipe.dataset + "\" holds no sample");
  if (recipe.ragged) FEEDLINE_CHECK_OK(check_ragged(options));
  FEEDLINE_TRY(plan::OrderConfig order, order_config(recipe, options));
  PipelinePlan plan;
  plan.options = options;
  plan.order = std::move(order);
  if (plan.options.num_workers == 0) {
    plan.adapts = true;
    plan.options.num_workers = share_of_cpus();
    if (options.most_workers > 0) plan.options.num_workers = std::min(plan.options.num_workers, options.most_workers);
  }
  FEEDLINE_CHECK_OK(lay_out(recipe, plan));
  plan.late_bytes = late_bytes_of(recipe, plan.options.batch_size, kUnknownRowBytes);
  const std::uint64_t each = std::max<std::uint64_t>(plan.batch_bytes + plan.late_bytes, 1);
  const std::uint64_t needed = plan.batch_bytes + late_bytes_of(recipe, plan.options.batch_size, 0);
  plan.late_is_guess = plan.batch_bytes + plan.late_bytes > needed;
  const bool given = options.memory_budget > 0;
  if (!given)
    plan.options.memory_budget =
        base::usable_memory_bytes() / kMemoryShare / static_cast<std::uint64_t>(local_ranks().count);
  if (plan.options.memory_budget < needed)
    return config_error(
        "loader: one batch takes " + std::string(needed > plan.batch_bytes ? "about " : "") + std::to_string(needed) +
        " bytes, the memory budget is " + std::to_string(plan.options.memory_budget) +
        (given ? "; raise memory_budget or lower batch_size"
               : " (an eighth of the memory that this process may use, shared by the ranks of this machine); lower "
                 "batch_size or set memory_budget"));
  plan.slots = std::max<std::uint64_t>(plan.options.memory_budget / each, 1);
  if (!given)
    plan.slots = std::min(plan.slots, std::clamp(kSmallBatchesBytes / each, kDefaultSlots, kMostSmallBatches));
  if (recipe.records && recipe.records->storage() != nullptr) {
    const std::uint64_t some = std::min(kSomeReadAhead, plan.options.memory_budget / 8);
    const auto left = [&] {
      return plan.options.memory_budget - std::min(plan.options.memory_budget, plan.slots * each);
    };
    if (left() < some && each <= some) plan.slots = std::max(kDefaultSlots, (plan.options.memory_budget - some) / each);
    plan.read_ahead_bytes = std::min(left(), kMostReadAhead);
  }
  plan.most_slots = plan.slots;
  if (plan.adapts && !given)
    plan.most_slots =
        std::clamp((plan.options.memory_budget - plan.read_ahead_bytes) / each, plan.slots, kDeeper * plan.slots);
  plan.short_rows = recipe.format->grain() > 1;
  plan.budget_reason = given ? "memory_budget" : "two batches or 4 MiB, within an eighth of usable memory";
  return plan;
}

}  // namespace feedline::pipeline
