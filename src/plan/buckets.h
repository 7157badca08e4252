// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts samples into buckets by length. The buckets are the same in every epoch.

#include <cstdint>
#include <span>
#include <vector>

#include "feedline/loader.h"

namespace feedline::plan {

// Immutable and thread-safe. 4 bytes of memory per sample.
class Buckets {
 public:
  // lengths: of every sample. Requires: ascending bounds, no length above the last bound, rows > 0, fewer than 2^32
  // samples.
  Buckets(std::vector<Bucket> buckets, std::span<const std::uint64_t> lengths);

  const std::vector<Bucket>& all() const { return buckets_; }
  std::uint64_t size() const { return buckets_.size(); }
  const Bucket& operator[](std::uint64_t bucket) const { return buckets_[bucket]; }
  std::uint64_t samples() const { return samples_.size(); }
  // Samples whose shortest fitting bucket this is, ascending.
  std::span<const std::uint32_t> members(std::uint64_t bucket) const;

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> ends_;     // cumulative number of members up to and including this bucket
  std::vector<std::uint32_t> samples_;  // by bucket
};

// Returns bounds of at most `count` buckets with similar numbers of samples, in multiples of 8 (for matrix units).
// Requires: count > 0; at least one length.
std::vector<std::uint64_t> quantile_bounds(std::vector<std::uint64_t> lengths, std::uint64_t count);

}  // namespace feedline::plan
