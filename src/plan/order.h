// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps the positions of an epoch to samples. The same config produces the same order on every machine, and any position
// can be computed in constant time, so resuming needs no replay.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "feedline/sampling.h"
#include "plan/buckets.h"

namespace feedline::plan {

struct OrderedSample {
  std::uint64_t sample = 0;  // index in the dataset
  std::uint64_t draw = 0;    // key of its random draws: the sample, unless it is repeated in an epoch
  friend bool operator==(const OrderedSample&, const OrderedSample&) = default;
};

// A part of a mixture. Its samples are numbered after those of the earlier parts.
struct Part {
  std::uint64_t size = 0;
  double weight = 0;
};

struct Mixture {
  std::vector<Part> parts;
  std::uint64_t samples = 0;  // positions of an epoch
  // The epoch from which the weights apply, and the number of samples of each part that earlier epochs have used
  // (empty if they have used none).
  std::uint64_t since = 0;
  std::vector<std::uint64_t> used = {};
};

// The samples of an epoch, if it does not use every sample once; at most one of the members is set.
struct Selection {
  std::shared_ptr<const Mixture> mixture;
  std::shared_ptr<const Sampling> sampling;
  friend bool operator==(const Selection&, const Selection&) = default;
};

// The selection for epochs that begin from now on. Thread-safe: a loader's owner replaces it between epochs while other
// threads may be planning the next epoch.
class CurrentSelection {
 public:
  explicit CurrentSelection(Selection selection) : selection_(std::move(selection)) {}
  Selection get() const {
    const std::lock_guard lock(mutex_);
    return selection_;
  }
  void set(Selection selection) {
    const std::lock_guard lock(mutex_);
    std::swap(selection_, selection);  // the previous one is freed after the lock is released
  }

 private:
  mutable std::mutex mutex_;
  Selection selection_;
};

struct OrderConfig {
  std::uint64_t size = 0;  // samples in the dataset
  bool shuffle = false;
  std::uint64_t seed = 0;
  // If not 0: the order of shards is permuted, and samples are permuted within groups of this many shards.
  std::uint64_t shard_window = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> shard_ends;  // or of blocks; nullptr: one shard
  Selection selection;                                           // empty: every sample once
  std::shared_ptr<CurrentSelection> current;                     // instead of `selection`; nullptr: it never changes
  std::shared_ptr<const Buckets> buckets;                        // nullptr: samples are not grouped by length
  std::uint64_t repeat = 1;  // above 1: every sample appears this many times in consecutive positions
};

class BucketOrder;

// The range [first, end) of an epoch's positions that contains all samples of a shard, and possibly others. The range
// is empty if the epoch has no samples of the shard.
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
  virtual OrderedSample at(std::uint64_t position) const = 0;
  // Like at(), for a range of positions that starts at `first`. Requires: first + samples.size() <= size(), and both
  // spans have the same length.
  virtual void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const;
  // Returns the positions at which each shard is read; for orders that do not read shard by shard, this is the whole
  // epoch. shard_ends: the cumulative number of samples up to the end of each shard. Requires: shard_ends ascend, and
  // the last one is the size of the dataset.
  virtual std::vector<ShardUse> shard_uses(std::span<const std::uint64_t> shard_ends) const {
    return std::vector<ShardUse>(shard_ends.size(), {0, size()});
  }
  // Returns false if the caller has specified that the epoch repeats or omits some samples.
  virtual bool has_all_samples() const { return true; }
  // Returns the order as BucketOrder if it consists of batches that a plan must not change, or nullptr if the plan may
  // divide it anywhere.
  virtual const BucketOrder* as_buckets() const { return nullptr; }
};

// The maximum number of repetitions, which is limited because the highest bits of a draw contain the repetition's
// number.
inline constexpr std::uint64_t kMostRepeats = 255;

// Requires: config.size > 0. With a mixture, config.size equals the total size of the parts, of which at least one has
// a positive weight. With sampling, config.size equals Sampling::samples(). With buckets or shard_window, there must be
// no sampling. With repeat (1 to kMostRepeats), there must be no mixture and no buckets, and fewer than 2^56 samples.
std::shared_ptr<const Order> make_order(const OrderConfig& config, std::uint64_t epoch);

}  // namespace feedline::plan
