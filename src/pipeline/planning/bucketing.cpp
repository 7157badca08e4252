// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/bucketing.h"
#include "format/format.h"
#include "pipeline/planning/audio_lengths.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace feedline::pipeline {
namespace {

Result<void> check_context(const Recipe& recipe, const LoaderOptions& options) {
  const std::string what = options.max_seconds > 0 ? "max_seconds does" : "buckets do";
  if (options.max_seconds == 0 && !recipe.ragged)
    return config_error("loader: buckets need samples of different lengths; all samples of \"" + recipe.dataset +
                        "\" have the same length, or lengths that are only known after reading (for audio, pass "
                        "max_seconds)");
  if (options.max_seconds > 0 && options.max_tokens > 0)
    return config_error("loader: max_tokens is for sequences and max_seconds for audio; pass one of them");
  if (recipe.mixture)
    return config_error("loader: " + what + " not support mixtures; mix the loaders' batches instead");
  if (options.shard_window > 0) return config_error("loader: " + what + " not support shuffle=\"shards\"");
  if (recipe.format->size() > std::numeric_limits<std::uint32_t>::max())
    return config_error("loader: " + what + " not support 2^32 samples or more");
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
      return config_error("loader: bucket bounds must be above 0 and ascending; " + std::to_string(bound) +
                          " follows " + std::to_string(before));
    before = bound;
  }
  if (before >= longest) return {};
  return config_error("loader: the longest sample has a length of " + std::to_string(longest) +
                      ", but the last bucket ends at " + std::to_string(before));
}

// The limits of batches: in the units of the lengths, and as the caller wrote them.
struct Limits {
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint64_t> bounds;  // empty: chosen by quantiles
  std::uint64_t most = 0;             // bound times rows of a batch; 0: no limit
  std::string option;                 // for messages
};

constexpr std::uint64_t kUsualBuckets = 10;

Result<Limits> limits_of(const Recipe& recipe, const LoaderOptions& options) {
  if (options.max_seconds == 0)
    return Limits{lengths_of(recipe), options.bucket_bounds, options.max_tokens,
                  "max_tokens=" + std::to_string(options.max_tokens)};
  FEEDLINE_TRY(AudioLengths audio, audio_lengths(recipe));
  Limits limits{std::move(audio.samples), {}, static_cast<std::uint64_t>(options.max_seconds * audio.rate), {}};
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "max_seconds=%g", options.max_seconds);
  limits.option = text.data();
  for (const std::uint64_t seconds : options.bucket_bounds) limits.bounds.push_back(seconds * audio.rate);
  return limits;
}

}  // namespace

Result<std::shared_ptr<const plan::Buckets>> make_buckets(const Recipe& recipe, const LoaderOptions& options) {
  if (options.bucket_bounds.empty() && options.buckets == 0 && options.max_seconds == 0) {
    if (options.max_tokens == 0) return nullptr;
    return config_error("loader: max_tokens needs buckets, such as buckets=8");
  }
  FEEDLINE_CHECK_OK(check_context(recipe, options));
  FEEDLINE_TRY(Limits limits, limits_of(recipe, options));
  const std::uint64_t longest = std::ranges::max(limits.lengths);
  if (limits.bounds.empty())
    limits.bounds = plan::quantile_bounds(limits.lengths, options.buckets == 0 ? kUsualBuckets : options.buckets);
  // bounds are rounded up, and need not exceed the longest sample of audio
  if (options.max_seconds > 0 && options.bucket_bounds.empty()) limits.bounds.back() = longest;
  FEEDLINE_CHECK_OK(check_bounds(limits.bounds, longest));
  std::vector<Bucket> buckets;
  for (const std::uint64_t bound : limits.bounds) {
    std::uint64_t rows = options.batch_size.value_or(std::max<std::uint64_t>(limits.most, 1));
    if (limits.most > 0) {
      const std::uint64_t most = limits.most / bound;
      if (most == 0)
        return config_error("loader: " + limits.option + " is too small for any sample of the bucket up to " +
                            std::to_string(bound) + (options.max_seconds > 0 ? " samples of audio" : ""));
      rows = std::min(rows, most);
    }
    std::uint64_t of_all_ranks = 0;
    if (__builtin_mul_overflow(rows, options.world_size, &of_all_ranks))
      return config_error("loader: a batch of " + std::to_string(rows) + " samples on each rank is too large");
    buckets.push_back({bound, of_all_ranks});
  }
  return std::make_shared<const plan::Buckets>(std::move(buckets), limits.lengths);
}

}  // namespace feedline::pipeline
