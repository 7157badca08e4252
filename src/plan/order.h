// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps the positions of an epoch to samples. Pure: the same config gives the same order on every machine, in constant
// time for any position, so resuming needs no replay.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "feedline/sampling.h"
#include "plan/buckets.h"

namespace feedline::plan {

struct Placed {
  std::uint64_t sample = 0;  // index in the dataset
  std::uint64_t draw = 0;    // key of its random draws: the sample, unless it is repeated in an epoch
  friend bool operator==(const Placed&, const Placed&) = default;
};

// One part of a mixture: its samples follow those of earlier parts.
struct Part {
  std::uint64_t size = 0;
  double weight = 0;
};

struct Mixture {
  std::vector<Part> parts;
  std::uint64_t samples = 0;  // positions of an epoch
  // The epoch from which the weights apply, and each part's samples used by the epochs before it (empty: none).
  std::uint64_t since = 0;
  std::vector<std::uint64_t> used = {};
};

// Which samples an epoch has, if not every sample once; at most one of them is set.
struct Selection {
  std::shared_ptr<const Mixture> mixture;
  std::shared_ptr<const Sampling> sampling;
  friend bool operator==(const Selection&, const Selection&) = default;
};

// The selection of the epochs that begin from now on. Thread-safe: a loader's owner replaces it between epochs, while
// other threads may plan the next epoch.
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
  // If not 0: shards are permuted, and samples within groups of this many shards.
  std::uint64_t shard_window = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> shard_ends;  // nullptr: one shard
  Selection selection;                                           // empty: every sample once
  std::shared_ptr<CurrentSelection> current;                     // instead of `selection`; nullptr: it never changes
  std::shared_ptr<const Buckets> buckets;                        // nullptr: samples are not grouped by length
  std::uint64_t repeat = 1;  // above 1: every sample appears this many times in consecutive positions
};

class BucketOrder;

// The positions of an epoch, [first, end), that contain a shard's samples, possibly among others. Empty if there are
// none.
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
  // The same for a range of positions starting at `first`. Requires: first + samples.size() <= size(), both spans
  // equally long.
  virtual void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const;
  // Returns when each shard is read: for orders that do not read shard by shard, the whole epoch. shard_ends:
  // cumulative number of samples up to the end of each shard. Requires: ascending, the last being the size of the
  // dataset.
  virtual std::vector<ShardUse> shard_uses(std::span<const std::uint64_t> shard_ends) const {
    return std::vector<ShardUse>(shard_ends.size(), {0, size()});
  }
  // Returns false if the epoch has some samples several times or not at all, as the caller has specified.
  virtual bool has_all_samples() const { return true; }
  // Returns the order if it consists of batches that a plan must not change; nullptr if it may be divided anywhere.
  virtual const BucketOrder* as_buckets() const { return nullptr; }
};

// Maximum number of repeats, because the highest bits of the draw hold the repetition.
inline constexpr std::uint64_t kMostRepeats = 255;

// Requires: config.size > 0; it equals the total size of a mixture's parts, one of which has a positive weight, and
// Sampling::samples(). With buckets or shard_window: no sampling. With repeat, from 1 to kMostRepeats: no mixture or
// buckets, and fewer than 2^56 samples.
std::shared_ptr<const Order> make_order(const OrderConfig& config, std::uint64_t epoch);

}  // namespace feedline::plan
