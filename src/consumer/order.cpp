// SPDX-License-Identifier: Apache-2.0
#include "feedline/order.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/guarded.h"
#include "plan/order.h"

namespace feedline {
namespace {

constexpr std::size_t kSome = 1024;  // positions at a time

Result<void> check(const OrderQuery& query) {
  if (query.samples == 0) return config_error("sample_order: there are no samples");
  if (query.begin > query.samples || query.count > query.samples - query.begin)
    return config_error("sample_order: positions up to " + std::to_string(query.begin) + " + " +
                        std::to_string(query.count) + " were asked for, of " + std::to_string(query.samples));
  const auto& ends = query.shard_ends;
  if (!ends.empty() && (ends.back() != query.samples || !std::ranges::is_sorted(ends)))
    return config_error("sample_order: the shards' ends do not ascend to the number of samples");
  return {};
}

}  // namespace

Result<std::vector<std::uint64_t>> sample_order(const OrderQuery& query) {
  return base::guarded([&]() -> Result<std::vector<std::uint64_t>> {
    FEEDLINE_CHECK_OK(check(query));
    plan::OrderConfig config;
    config.size = query.samples;
    config.shuffle = query.shuffle;
    config.seed = query.seed;
    config.shard_window = query.shard_window;
    if (!query.shard_ends.empty())
      config.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(query.shard_ends);
    const auto order = plan::make_order(config, query.epoch);
    std::vector<std::uint64_t> samples(query.count);
    std::array<std::uint64_t, kSome> draws;  // that nobody asked for
    for (std::uint64_t done = 0; done < query.count; done += kSome) {
      const std::uint64_t count = std::min<std::uint64_t>(kSome, query.count - done);
      order->place(query.begin + done, std::span(samples).subspan(done, count), std::span(draws).first(count));
    }
    return samples;
  });
}

}  // namespace feedline
