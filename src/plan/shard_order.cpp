// SPDX-License-Identifier: Apache-2.0
#include "plan/shard_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace feedline::plan {

ShardOrder::ShardOrder(std::shared_ptr<const std::vector<std::uint64_t>> shard_ends, std::uint64_t window,
                       std::uint64_t key)
    : shard_ends_(std::move(shard_ends)), window_(window), key_(key) {
  const std::uint64_t shards = shard_ends_->size();
  FEEDLINE_CHECK(window > 0 && shards > 0 && shards <= std::numeric_limits<std::uint32_t>::max());
  const Permutation permutation(shards, base::mix64(key));
  shards_.resize(shards);
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < shards; ++i) {
    const std::uint64_t shard = permutation(i);
    shards_[i] = static_cast<std::uint32_t>(shard);
    end += (*shard_ends_)[shard] - begin_of(shard);
    if ((i + 1) % window == 0 || i + 1 == shards) group_ends_.push_back(end);
  }
}

std::vector<ShardUse> ShardOrder::shard_uses(std::span<const std::uint64_t> shard_ends) const {
  std::vector<ShardUse> of_blocks(shards_.size());
  for (std::uint64_t i = 0; i < shards_.size(); ++i) {
    const std::uint64_t group = i / window_;
    of_blocks[shards_[i]] = {group == 0 ? 0 : group_ends_[group - 1], group_ends_[group]};
  }
  std::vector<ShardUse> uses;
  std::size_t block = 0;
  for (const std::uint64_t end : shard_ends) {
    ShardUse& use = uses.emplace_back();
    for (; block < shards_.size() && (*shard_ends_)[block] <= end; ++block) {
      const ShardUse& part = of_blocks[block];
      if ((*shard_ends_)[block] == begin_of(block)) continue;
      use = use == ShardUse{} ? part : ShardUse{std::min(use.first, part.first), std::max(use.end, part.end)};
    }
    FEEDLINE_CHECK(begin_of(block) == end);
  }
  return uses;
}

OrderedSample ShardOrder::at(std::uint64_t position) const {
  FEEDLINE_CHECK(position < size());
  const auto group =
      static_cast<std::uint64_t>(std::distance(group_ends_.begin(), std::ranges::upper_bound(group_ends_, position)));
  const std::uint64_t begin = group == 0 ? 0 : group_ends_[group - 1];
  const Permutation permutation(group_ends_[group] - begin, base::mix64(key_ + group + 1));
  std::uint64_t left = permutation(position - begin);
  for (std::uint64_t i = group * window_;; ++i) {
    const std::uint64_t shard = shards_[i];
    const std::uint64_t first = begin_of(shard);
    const std::uint64_t samples = (*shard_ends_)[shard] - first;
    if (left < samples) return {first + left, first + left};
    left -= samples;
  }
}

}  // namespace feedline::plan
