// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/bucketing.h"
#include "format/format.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace feedline::pipeline {
namespace {

Result<void> check_context(const Recipe& recipe, const LoaderOptions& options) {
  if (!recipe.ragged)
    return config_error("loader: buckets need samples of different lengths; all samples of \"" + recipe.dataset +
                        "\" have the same length");
  if (recipe.mixture) return config_error("loader: buckets do not support mixtures; mix the loaders' batches instead");
  if (options.shard_window > 0) return config_error("loader: buckets do not support shuffle=\"shards\"");
  if (recipe.format->size() > std::numeric_limits<std::uint32_t>::max())
    return config_error("loader: buckets support fewer than 2^32 samples");
  return {};
}

// Returns the length of the longest field of each sample.
std::vector<std::uint64_t> lengths_of(const Recipe& recipe) {
  std::vector<std::uint64_t> lengths(recipe.format->size());
  for (std::size_t field = 0; field < recipe.schema.size(); ++field) {
    if (!recipe.schema[field].array.is_ragged()) continue;
    for (std::uint64_t i = 0; i < lengths.size(); ++i) lengths[i] = std::max(lengths[i], recipe.rows->length(i, field));
  }
  return lengths;
}

Result<void> check_bounds(const std::vector<std::uint64_t>& bounds, std::uint64_t longest) {
  std::uint64_t before = 0;
  for (const std::uint64_t bound : bounds) {
    if (bound <= before)
      return config_error("loader: buckets must ascend from 1 on; " + std::to_string(bound) + " follows " +
                          std::to_string(before));
    before = bound;
  }
  if (before >= longest) return {};
  return config_error("loader: the longest sample has a length of " + std::to_string(longest) +
                      ", but the last bucket ends at " + std::to_string(before));
}

}  // namespace

Result<std::shared_ptr<const plan::Buckets>> make_buckets(const Recipe& recipe, const LoaderOptions& options) {
  std::vector<std::uint64_t> bounds = options.bucket_bounds;
  if (bounds.empty() && options.buckets == 0) {
    if (options.max_tokens == 0) return nullptr;
    return config_error("loader: max_tokens needs buckets, such as buckets=8");
  }
  FEEDLINE_CHECK_OK(check_context(recipe, options));
  const std::vector<std::uint64_t> lengths = lengths_of(recipe);
  if (bounds.empty()) bounds = plan::quantile_bounds(lengths, options.buckets);
  FEEDLINE_CHECK_OK(check_bounds(bounds, std::ranges::max(lengths)));
  std::vector<Bucket> buckets;
  for (const std::uint64_t bound : bounds) {
    std::uint64_t rows = options.batch_size.value_or(options.max_tokens);
    if (options.max_tokens > 0) {
      const std::uint64_t most = options.max_tokens / bound;
      if (most == 0)
        return config_error("loader: max_tokens=" + std::to_string(options.max_tokens) +
                            " is too small for any sample of the bucket up to " + std::to_string(bound));
      rows = std::min(rows, most);
    }
    std::uint64_t of_all_ranks = 0;
    if (__builtin_mul_overflow(rows, options.world_size, &of_all_ranks))
      return config_error("loader: a batch of " + std::to_string(rows) + " samples on each rank is too large");
    buckets.push_back({bound, of_all_ranks});
  }
  return std::make_shared<const plan::Buckets>(std::move(buckets), lengths);
}

}  // namespace feedline::pipeline
