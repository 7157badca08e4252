// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which sample stands at which position of an epoch. Pure: the same config gives the same order on every machine, in
// constant time for any position, so that nothing has to be replayed to go on from there.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/buckets.h"

namespace feedline::plan {

struct Placed {
  std::uint64_t sample = 0;  // index in the dataset
  std::uint64_t draw = 0;    // what its randomness is keyed by: the sample, but for one that comes again in an epoch
  friend bool operator==(const Placed&, const Placed&) = default;
};

// One part of a mixture: samples that follow those of the parts before it.
struct Part {
  std::uint64_t size = 0;
  double weight = 0;
};

struct Mixture {
  std::vector<Part> parts;
  std::uint64_t samples = 0;  // positions of an epoch
};

struct OrderConfig {
  std::uint64_t size = 0;  // samples in the dataset
  bool shuffle = false;
  std::uint64_t seed = 0;
  // Not 0: shards are permuted, and the samples of so many of them at a time.
  std::uint64_t shard_window = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> shard_ends;  // nullptr: one shard
  std::shared_ptr<const Mixture> mixture;                        // nullptr: every sample once
  std::shared_ptr<const Buckets> buckets;                        // nullptr: samples of any length stand together
  std::uint64_t repeat = 1;  // above 1: every sample so many times, one after the other, in as many positions
};

class BucketOrder;

// The positions of an epoch, [first, end), in which a shard's samples stand; others may stand among them. Empty: none
// do.
struct ShardUse {
  std::uint64_t first = 0, end = 0;
  friend bool operator==(const ShardUse&, const ShardUse&) = default;
};

// Immutable and thread-safe.
class Order {
 public:
  virtual ~Order() = default;
  virtual std::uint64_t size() const = 0;  // positions of an epoch
  // Requires: position < size().
  virtual Placed at(std::uint64_t position) const = 0;
  // The same of as many positions from `first` on. Requires: first + samples.size() <= size(), two of a size.
  virtual void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const;
  // Where each shard is read from, given the samples up to and with each: the whole epoch, where an order does not walk
  // through them. Requires: ascending, the last the samples of the dataset.
  virtual std::vector<ShardUse> shard_uses(std::span<const std::uint64_t> shard_ends) const {
    return std::vector<ShardUse>(shard_ends.size(), {0, size()});
  }
  // An order that is made of batches, which a plan then keeps; nullptr: it may be cut anywhere.
  virtual const BucketOrder* as_buckets() const { return nullptr; }
};

// What may repeat at most: a repetition's number stands in the highest bits of its draw.
inline constexpr std::uint64_t kMostRepeats = 255;

// Requires: config.size > 0; its mixture's parts are as large together, and a positive weight among them. With repeat,
// from 1 to kMostRepeats, neither a mixture nor buckets, and fewer than 2^56 samples.
std::shared_ptr<const Order> make_order(const OrderConfig& config, std::uint64_t epoch);

}  // namespace feedline::plan
