// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the order in which a Loader delivers the samples of an epoch, for programs that examine orders. Needs no
// dataset, and its memory use does not depend on the number of samples.

#include <cstdint>
#include <vector>

#include "feedline/error.h"

namespace feedline {

struct OrderQuery {
  std::uint64_t samples = 0;              // of the dataset
  std::vector<std::uint64_t> shard_ends;  // cumulative samples at the end of each shard; empty: one shard
  // As in LoaderOptions.
  bool shuffle = false;
  std::uint64_t shard_window = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  // The requested positions.
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

// Returns the dataset index of the sample at each of `count` positions, starting at `begin`. Fails with kConfig if
// there are no samples, positions are past the end, or shard ends do not ascend to `samples`.
Result<std::vector<std::uint64_t>> sample_order(const OrderQuery& query);

struct RankQuery {
  std::uint64_t batch_size = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
};

// Returns the dataset indexes of the samples that one rank gets in the epoch, in order. The result equals that of a
// Loader with LoaderOptions::uneven set to kExact. Ignores `query.begin` and `query.count`. Fails with kConfig like
// sample_order(), or if the batch size or the number of ranks is 0, or the rank does not exist.
Result<std::vector<std::uint64_t>> rank_order(const OrderQuery& query, const RankQuery& rank);

}  // namespace feedline
