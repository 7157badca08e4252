// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/block_reads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "format/columnar/block_store.h"
#include "format/format.h"

namespace feedline::pipeline {
namespace {

constexpr double kMostPerByte = 4;
constexpr std::uint64_t kUsualWindow = 16;

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// The decompressed size of the largest block that shuffle="shards" permutes.
std::uint64_t largest_block(const format::BlockCosts& costs, const std::vector<std::uint64_t>& ends) {
  std::uint64_t samples = 0;
  for (std::uint64_t begin = 0; const std::uint64_t end : ends)
    samples = std::max(samples, end - std::exchange(begin, end));
  return static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(costs.bytes) * static_cast<double>(samples) / static_cast<double>(ends.back())));
}

// The probability that a block is not stored when one of its values is read, if these blocks are in use at a time.
// Blocks in the cache folder are stored until the dataset is closed; those in memory are replaced.
double missing_share(const format::BlockCosts& costs, std::uint64_t in_use) {
  const auto without = [](std::uint64_t room, std::uint64_t bytes) {
    return bytes <= room ? 0.0 : 1 - static_cast<double>(room) / static_cast<double>(bytes);
  };
  if (in_use == costs.bytes) return without(costs.memory + costs.disk, in_use);
  return without(costs.memory, in_use) * without(costs.memory + costs.disk, costs.bytes);
}

}  // namespace

std::string costly_block_reads(const Source& source, const plan::OrderConfig& order) {
  if (!order.shuffle && !order.buckets && !order.selection.sampling) return {};
  const format::BlockCosts costs = source.format()->block_costs();
  if (costs.bytes == 0) return {};
  const auto blocks = source.format()->shuffle_blocks();
  const std::uint64_t largest = blocks.ends.size() > 1 ? largest_block(costs, blocks.ends) : costs.bytes;
  const bool is_by_blocks = order.shard_window > 0 && blocks.ends.size() > 1;
  const std::uint64_t window = std::min<std::uint64_t>(order.shard_window, blocks.ends.size());
  const std::uint64_t in_use = is_by_blocks ? std::min(costs.bytes, window * largest) : costs.bytes;
  const double per_byte = missing_share(costs, in_use) * costs.bytes_of_sample / std::max(costs.value_bytes, 1.0);
  if (per_byte <= kMostPerByte) return {};
  std::string text = "about " + std::to_string(std::llround(per_byte)) +
                     " bytes will be decompressed per byte delivered: samples are read at random from compressed "
                     "blocks that take " +
                     mebibytes(in_use) + (is_by_blocks ? " at a time" : "") + ", but only " + mebibytes(costs.memory) +
                     " fit in memory, and " + mebibytes(costs.disk) + " in the cache folder; ";
  const std::uint64_t fitting = std::min(costs.memory / std::max<std::uint64_t>(largest, 1), kUsualWindow);
  const bool can_permute_blocks =
      order.shuffle && !order.buckets && !order.selection.sampling && !order.selection.mixture;
  if (can_permute_blocks && fitting > 0)
    return text + "pass " + (order.shard_window > 0 ? "" : "shuffle=\"shards\", ") +
           "shuffle_window=" + std::to_string(fitting) + ", which reads " + std::to_string(fitting) + " " +
           std::string(blocks.name) + " at a time";
  const auto needed = static_cast<double>(costs.bytes) / format::BlockStore::kShare;
  return text + "set XDG_CACHE_HOME to a folder on a disk with " + mebibytes(static_cast<std::uint64_t>(needed)) +
         " of free space";
}

}  // namespace feedline::pipeline
