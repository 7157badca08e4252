// SPDX-License-Identifier: Apache-2.0
#pragma once

// Samples sorted into buckets by their length. The same in every epoch.

#include <cstdint>
#include <span>
#include <vector>

#include "feedline/loader.h"

namespace feedline::plan {

// Immutable and thread-safe. 4 bytes of memory per sample.
class Buckets {
 public:
  // lengths: of every sample. Requires: bounds that ascend, none of the lengths above the last one, rows > 0, fewer
  // than 2^32 samples.
  Buckets(std::vector<Bucket> buckets, std::span<const std::uint64_t> lengths);

  const std::vector<Bucket>& all() const { return buckets_; }
  std::uint64_t size() const { return buckets_.size(); }
  const Bucket& operator[](std::uint64_t bucket) const { return buckets_[bucket]; }
  std::uint64_t samples() const { return samples_.size(); }
  // Samples whose shortest fitting bucket this is, ascending.
  std::span<const std::uint32_t> members(std::uint64_t bucket) const;

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> ends_;     // members of the buckets up to and with this one
  std::vector<std::uint32_t> samples_;  // by bucket
};

// Bounds of at most `count` buckets with about as many samples each, multiples of 8 (what matrix units like). Requires:
// count > 0; a length.
std::vector<std::uint64_t> quantile_bounds(std::vector<std::uint64_t> lengths, std::uint64_t count);

}  // namespace feedline::plan
