// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts samples into buckets by length. The buckets are the same in every epoch.

#include <cstdint>
#include <span>
#include <vector>

#include "feedline/loader.h"

namespace feedline::plan {

// Immutable and thread-safe. Takes 4 bytes of memory per sample.
class Buckets {
 public:
  // lengths: the length of every sample. Requires: the bounds ascend, no length exceeds the last bound, rows > 0, and
  // there are fewer than 2^32 samples.
  Buckets(std::vector<Bucket> buckets, std::span<const std::uint64_t> lengths);

  const std::vector<Bucket>& all() const { return buckets_; }
  std::uint64_t size() const { return buckets_.size(); }
  const Bucket& operator[](std::uint64_t bucket) const { return buckets_[bucket]; }
  std::uint64_t samples() const { return samples_.size(); }
  // Returns the samples, in ascending order, for which this is the shortest bucket that fits.
  std::span<const std::uint32_t> members(std::uint64_t bucket) const;

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> ends_;     // cumulative number of members up to and including this bucket
  std::vector<std::uint32_t> samples_;  // by bucket
};

// Returns bounds for at most `count` buckets with similar numbers of samples, as multiples of 8 (the tile size of
// matrix units). Requires: count > 0, and at least one length.
std::vector<std::uint64_t> quantile_bounds(std::vector<std::uint64_t> lengths, std::uint64_t count);

}  // namespace feedline::plan
