// SPDX-License-Identifier: Apache-2.0
#include "plan/deal_packs.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"

namespace feedline::plan {

double attention_cost(std::span<const PackPiece> pieces) {
  double cost = 0;
  for (const PackPiece& piece : pieces) cost += static_cast<double>(piece.length) * piece.length;
  return cost;
}

std::vector<std::uint64_t> deal_packs(std::span<const double> costs, std::span<const std::uint64_t> rows) {
  FEEDLINE_CHECK(std::accumulate(rows.begin(), rows.end(), std::uint64_t{0}) == costs.size());
  std::vector<std::size_t> packs(costs.size());
  std::iota(packs.begin(), packs.end(), std::size_t{0});
  std::ranges::stable_sort(packs, [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  using Load = std::pair<double, std::uint64_t>;  // of a rank; the lowest rank of several with the same cost
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::uint64_t rank = 0; rank < rows.size(); ++rank)
    if (rows[rank] > 0) loads.emplace(0, rank);
  std::vector<std::uint64_t> left(rows.begin(), rows.end());
  std::vector<std::uint64_t> rank_of(costs.size());
  for (const std::size_t pack : packs) {
    const auto [cost, rank] = loads.top();
    loads.pop();
    rank_of[pack] = rank;
    if (--left[rank] > 0) loads.emplace(cost + costs[pack], rank);
  }
  return rank_of;
}

}  // namespace feedline::plan
