// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/order.h"
#include "plan/permutation.h"

namespace feedline::plan {

// An order for storage with slow random access: permutes the shards, and then the samples within each group of `window`
// consecutive shards. At any time, only the shards of one group are read.
//
//   shards      | 4 1 7 | 0 6 2 | 5 3 |       window 3
//   samples     |permuted|permuted|permuted|
//
// This is less random than a full shuffle: a sample's neighbours come from `window` shards instead of all shards. The
// shards may also be blocks of stored shards, such as the row groups of Parquet files.
class ShardOrder final : public Order {
 public:
  // shard_ends: the cumulative number of samples up to the end of each shard. Requires: shard_ends ascend, the last one
  // is above 0, and window > 0.
  ShardOrder(std::shared_ptr<const std::vector<std::uint64_t>> shard_ends, std::uint64_t window, std::uint64_t key);

  std::uint64_t size() const override { return shard_ends_->back(); }
  OrderedSample at(std::uint64_t position) const override;
  // Requires: each of these shards consists of whole shards of the order.
  std::vector<ShardUse> shard_uses(std::span<const std::uint64_t> shard_ends) const override;

 private:
  std::uint64_t begin_of(std::uint64_t shard) const { return shard == 0 ? 0 : (*shard_ends_)[shard - 1]; }

  std::shared_ptr<const std::vector<std::uint64_t>> shard_ends_;
  std::uint64_t window_;
  std::uint64_t key_;
  std::vector<std::uint32_t> shards_;      // permuted
  std::vector<std::uint64_t> group_ends_;  // cumulative positions up to and including each group
};

}  // namespace feedline::plan
