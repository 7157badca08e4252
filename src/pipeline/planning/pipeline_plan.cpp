// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/pipeline_plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "batch/batch_layout.h"
#include "format/format.h"
#include "pipeline/planning/batch_mix.h"
#include "pipeline/planning/bucketing.h"
#include "pipeline/planning/device_postprocess.h"
#include "pipeline/planning/memory_share.h"
#include "pipeline/planning/thread_placement.h"

namespace feedline::pipeline {
namespace {

// Larger numbers are assumed to be mistakes.
constexpr int kMaxThreads = 1024;
// The maximum number of samples in a global batch, so that products of batches and samples do not overflow 64 bits.
constexpr std::uint64_t kMostOfAllRanks = std::uint64_t{1} << 48;

Result<void> check_options(const LoaderOptions& options) {
  if (!options.batch_size && options.max_tokens == 0 && options.max_seconds == 0)
    return config_error("loader: pass batch_size, or buckets and max_tokens, or for audio max_seconds");
  if (!(options.max_seconds >= 0) || options.max_seconds > 1e9)
    return config_error("loader: max_seconds must be a positive number");
  if (options.batch_size == 0) return config_error("loader: batch_size must be at least 1");
  if (options.num_workers < 0 || options.num_workers > kMaxThreads)
    return config_error("loader: num_workers must be between 0 and " + std::to_string(kMaxThreads) + ", got " +
                        std::to_string(options.num_workers));
  if (options.most_workers < 0) return config_error("loader: most_workers must not be negative");
  if (options.world_size == 0) return config_error("loader: world_size must be at least 1");
  if (options.rank >= options.world_size)
    return config_error("loader: rank must be below world_size=" + std::to_string(options.world_size) + ", got " +
                        std::to_string(options.rank));
  if (options.timeout.count() < 0) return config_error("loader: timeout must not be negative");
  if (options.batch_size > kMostOfAllRanks / options.world_size)
    return config_error("loader: batch_size=" + std::to_string(*options.batch_size) + " on each of " +
                        std::to_string(options.world_size) + " ranks is more than 2^48 samples; lower batch_size");
  return {};
}

// Rejects replacing bad samples, because batches are laid out for the plan's samples and a replacement may be longer.
Result<void> check_ragged(const LoaderOptions& options) {
  const auto refuse = [](const std::string& option) {
    return config_error("loader: " + option + " does not support samples of different lengths; use on_error=\"raise\"");
  };
  if (options.on_error == OnError::kSkip) return refuse("on_error=\"skip\"");
  if (options.on_error == OnError::kReplace) return refuse("on_error=\"replace\"");
  return {};
}

Result<void> check_repeat(const plan::OrderConfig& order, const LoaderOptions& options) {
  if (options.repeat == 0 || options.repeat > plan::kMostRepeats)
    return config_error("loader: repeat must be between 1 and " + std::to_string(plan::kMostRepeats) + ", got " +
                        std::to_string(options.repeat));
  if (options.repeat == 1) return {};
  if (order.selection.mixture)
    return config_error("loader: repeat does not support mixtures, whose passes continue across epochs");
  if (order.buckets) return config_error("loader: repeat does not support buckets");
  return {};
}

// Returns the number of samples that an epoch delivers over all ranks, without those that padding repeats.
std::uint64_t positions_of(const plan::OrderConfig& order) {
  const auto& [mixture, sampling] = order.selection;
  return mixture ? mixture->samples : sampling ? sampling->positions() : order.size;
}

Result<void> check_sampling(const Recipe& recipe, const LoaderOptions& options) {
  const auto refuse = [](const std::string& what) {
    return config_error("loader: weights, balanced and sampler do not support " + what);
  };
  if (recipe.mixture) return refuse("a mixture: set the weights of its datasets in mix() or with set_weights()");
  if (options.shard_window > 0) return refuse("shuffle=\"shards\"");
  if (!options.bucket_bounds.empty() || options.buckets > 0 || options.max_seconds > 0) return refuse("buckets");
  const std::uint64_t samples = recipe.format->size();
  if (options.sampling->samples() == samples) return {};
  return config_error(
      "loader: one weight or class per sample is needed: " + std::to_string(options.sampling->samples()) +
      " were given for " + std::to_string(samples) + " samples");
}

Result<plan::OrderConfig> order_config(const Recipe& recipe, const LoaderOptions& options) {
  plan::OrderConfig order;
  order.size = recipe.format->size();
  order.shuffle = options.shuffle;
  order.seed = options.seed;
  order.selection = {recipe.mixture, options.sampling};
  if (options.sampling) FEEDLINE_CHECK_OK(check_sampling(recipe, options));
  if (recipe.mixture || options.sampling) order.current = std::make_shared<plan::CurrentSelection>(order.selection);
  const std::uint64_t positions = positions_of(order);
  if (positions < options.world_size)
    return config_error("loader: world_size=" + std::to_string(options.world_size) + " exceeds the " +
                        std::to_string(positions) + " samples of an epoch, so some ranks would have no samples");
  FEEDLINE_TRY(order.buckets, make_buckets(recipe, options));
  FEEDLINE_CHECK_OK(check_repeat(order, options));
  order.repeat = options.repeat;
  if (options.shard_window == 0) return order;
  if (!options.shuffle) return config_error("loader: shard_window needs shuffle=True");
  if (order.selection.mixture) return config_error("loader: a mixture is shuffled as a whole, not by shards");
  order.shard_window = options.shard_window;
  order.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(recipe.format->shuffle_blocks().ends);
  return order;
}

// Skipping ends a rank's epoch earlier, because refills are taken from the end of the order.
void resolve_on_error(OnError on_error, PipelinePlan& plan) {
  plan.on_error = on_error;
  if (on_error != OnError::kSkip) return;
  if (plan.is_given) plan.on_error_reason = "the end of a given order is unknown";
  if (plan.ranks.world_size > 1) plan.on_error_reason = "a rank that ends early would leave the others waiting";
  if (!plan.on_error_reason.empty()) plan.on_error = OnError::kReplace;
}

void resolve_threads(const LoaderOptions& options, PipelinePlan& plan) {
  plan.adapts = options.num_workers == 0;
  const int share = plan.adapts ? share_of_cpus() : options.num_workers;
  plan.threads = plan.adapts && options.most_workers > 0 ? std::min(share, options.most_workers) : share;
  plan.threads_with_gpu = plan.adapts ? std::clamp(share - 1, 1, plan.threads) : plan.threads;
}

Result<std::shared_ptr<const batch::BatchLayout>> layout_of(Schema schema, std::uint64_t rows,
                                                            const PipelinePlan& plan) {
  std::uint64_t row_bytes = 0;
  for (const FieldSpec& field : schema)
    row_bytes += field.has_variable_size() ? field.usual_bytes : field.array.bytes();
  if (rows > (std::uint64_t{1} << 48) / std::max<std::uint64_t>(row_bytes, 1))
    return config_error("loader: a batch of " + std::to_string(rows) + " samples exceeds 256 TiB");
  return std::make_shared<const batch::BatchLayout>(std::move(schema), rows,
                                                    plan.mix ? std::optional(plan.mix->label()) : std::nullopt,
                                                    plan.postprocess ? plan.postprocess->extra_bytes(rows) : 0);
}

// Returns the maximum number of rows in a batch that is planned with at most `rows` rows. An order given by the caller
// may repeat samples, and a later sampling may repeat more.
std::uint64_t most_rows_of(std::uint64_t rows, const PipelinePlan& plan) {
  if (plan.is_given || plan.order.selection.sampling) return rows;
  return std::min(rows, (positions_of(plan.order) + plan.ranks.world_size - 1) / plan.ranks.world_size);
}

// Sets the shapes of batches, and the size of the largest batch.
Result<void> lay_out(const Recipe& recipe, std::optional<std::uint64_t> batch_size, PipelinePlan& plan) {
  if (!plan.order.buckets) {
    FEEDLINE_CHECK(batch_size);  // only buckets have another size
    plan.ranks.batch_rows = *batch_size;
    plan.most_rows = most_rows_of(*batch_size, plan);
    FEEDLINE_TRY(auto layout, layout_of(plan.mix ? plan.mix->schema() : longest_schema(recipe), plan.most_rows, plan));
    plan.batch_bytes = layout->bytes();
    if (!recipe.ragged) plan.layouts.push_back(std::move(layout));
    return {};
  }
  plan.ranks.batch_rows = plan.most_rows = 0;
  for (const Bucket& bucket : plan.order.buckets->all()) {
    const std::uint64_t rows = bucket.rows / plan.ranks.world_size;
    const std::uint64_t most_rows = most_rows_of(rows, plan);
    FEEDLINE_TRY(auto layout, layout_of(schema_of_length(recipe, bucket.bound), most_rows, plan));
    plan.ranks.batch_rows = std::max(plan.ranks.batch_rows, rows);
    plan.most_rows = std::max(plan.most_rows, most_rows);
    plan.batch_bytes = std::max<std::uint64_t>(plan.batch_bytes, layout->bytes());
    plan.layouts.push_back(std::move(layout));
  }
  return {};
}

// Requires: `plan` has its order, and specifies whether the caller passes the order.
Result<PipelinePlan> resolve(const Recipe& recipe, const LoaderOptions& options, PipelinePlan plan) {
  plan.ranks = {.rank = options.rank,
                .world_size = options.world_size,
                .drop_last = options.drop_last,
                .uneven = options.uneven,
                .delivered = {},
                .interleaved = plan.order.repeat > 1};
  plan.in_order = options.in_order || options.world_size > 1;
  plan.error_budget = options.error_budget;
  plan.timeout = options.timeout;
  plan.decoder_budget = options.decoder_budget;
  plan.short_rows = rows_at_once(recipe) > 1;
  resolve_on_error(options.on_error, plan);
  resolve_threads(options, plan);
  FEEDLINE_TRY(plan.mix, BatchMix::make(recipe, options));
  plan.postprocess = DevicePostprocess::make(recipe, recipe.schema, plan.mix != nullptr);
  FEEDLINE_CHECK_OK(lay_out(recipe, options.batch_size, plan));
  FEEDLINE_CHECK_OK(share_memory(recipe, options.memory_budget, plan));
  return plan;
}

Result<void> check(const Recipe& recipe, const LoaderOptions& options) {
  FEEDLINE_CHECK_OK(check_options(options));
  if (recipe.format->size() == 0) return config_error("loader: the dataset \"" + recipe.dataset + "\" has no samples");
  if (options.decoder_budget > 0 && !recipe.has_clips)
    return config_error("loader: decoder_budget is for clips of videos, but the samples of \"" + recipe.dataset +
                        "\" have none; omit it");
  return recipe.ragged || options.max_seconds > 0 ? check_ragged(options) : Result<void>();
}

}  // namespace

Schema schema_of(const Recipe& recipe, const PipelinePlan& plan) {
  const Schema& filled = plan.mix ? plan.mix->schema() : recipe.schema;
  return plan.postprocess ? plan.postprocess->delivered(filled) : filled;
}

std::uint64_t rows_delivered(const PipelinePlan& plan, std::uint64_t samples) {
  return plan.mix ? plan.mix->rows_of(samples) : samples;
}

std::string explain_mix(const PipelinePlan& plan) { return plan.mix ? plan.mix->explain() : std::string(); }

Result<PipelinePlan> plan_pipeline(const Recipe& recipe, const LoaderOptions& options) {
  FEEDLINE_CHECK_OK(check(recipe, options));
  PipelinePlan plan;
  FEEDLINE_TRY(plan.order, order_config(recipe, options));
  return resolve(recipe, options, std::move(plan));
}

Result<PipelinePlan> plan_given(const Recipe& recipe, const LoaderOptions& options) {
  FEEDLINE_CHECK_OK(check(recipe, options));
  PipelinePlan plan;
  plan.is_given = true;
  plan.order.size = recipe.format->size();
  plan.order.seed = options.seed;
  return resolve(recipe, options, std::move(plan));
}

plan::PlanConfig cut_of(const PipelinePlan& plan, const EpochStart& start) {
  plan::PlanConfig rest = plan.ranks;
  rest.begin = start.position;
  rest.delivered = start.delivered;
  rest.left_out = start.left_out;
  return rest;
}

plan::Plan whole_epoch(const PipelinePlan& plan, std::uint64_t epoch) {
  return {plan::make_order(plan.order, epoch), cut_of(plan)};
}

}  // namespace feedline::pipeline
