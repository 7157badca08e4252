// SPDX-License-Identifier: Apache-2.0
#include "feedline/order.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/guarded.h"
#include "plan/order.h"
#include "plan/plan.h"

namespace feedline {
namespace {

constexpr std::size_t kSome = 1024;  // positions at a time

Result<void> check(const OrderQuery& query) {
  if (query.samples == 0) return config_error("sample_order: there are no samples");
  if (query.begin > query.samples || query.count > query.samples - query.begin)
    return config_error("sample_order: positions up to " + std::to_string(query.begin) + " + " +
                        std::to_string(query.count) + " were requested, but there are only " +
                        std::to_string(query.samples));
  const auto& ends = query.shard_ends;
  if (!ends.empty() && (ends.back() != query.samples || !std::ranges::is_sorted(ends)))
    return config_error("sample_order: shard_ends must ascend to the number of samples");
  return {};
}

Result<void> check(const RankQuery& rank) {
  if (rank.batch_size == 0 || rank.world_size == 0 || rank.rank >= rank.world_size)
    return config_error("rank_order: rank must be below world_size, and batch_size at least 1; got rank " +
                        std::to_string(rank.rank) + " of " + std::to_string(rank.world_size) + " with batches of " +
                        std::to_string(rank.batch_size));
  return {};
}

std::shared_ptr<const plan::Order> order_of(const OrderQuery& query) {
  plan::OrderConfig config;
  config.size = query.samples;
  config.shuffle = query.shuffle;
  config.seed = query.seed;
  config.shard_window = query.shard_window;
  if (!query.shard_ends.empty())
    config.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(query.shard_ends);
  return plan::make_order(config, query.epoch);
}

}  // namespace

Result<std::vector<std::uint64_t>> sample_order(const OrderQuery& query) {
  return base::guarded([&]() -> Result<std::vector<std::uint64_t>> {
    FEEDLINE_CHECK_OK(check(query));
    const auto order = order_of(query);
    std::vector<std::uint64_t> samples(query.count);
    std::array<std::uint64_t, kSome> draws;  // not requested
    for (std::uint64_t done = 0; done < query.count; done += kSome) {
      const std::uint64_t count = std::min<std::uint64_t>(kSome, query.count - done);
      order->place(query.begin + done, std::span(samples).subspan(done, count), std::span(draws).first(count));
    }
    return samples;
  });
}

Result<std::vector<std::uint64_t>> rank_order(const OrderQuery& query, const RankQuery& rank) {
  return base::guarded([&]() -> Result<std::vector<std::uint64_t>> {
    FEEDLINE_CHECK_OK(check(query));
    FEEDLINE_CHECK_OK(check(rank));
    plan::PlanConfig config;
    config.batch_rows = rank.batch_size;
    config.rank = rank.rank;
    config.world_size = rank.world_size;
    config.uneven = Uneven::kExact;
    const plan::Plan plan(order_of(query), config);
    std::vector<std::uint64_t> samples(plan.samples(rank.rank)), draws(samples.size());
    std::uint64_t done = 0;
    for (std::uint64_t batch = 0; batch < plan.batches(); ++batch) {
      const std::uint64_t rows = plan.rows(batch);
      plan.place(batch * rank.batch_size, std::span(samples).subspan(done, rows), std::span(draws).subspan(done, rows));
      done += rows;
    }
    return samples;
  });
}

}  // namespace feedline
