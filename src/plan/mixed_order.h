// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mixes datasets by weight, as a pure function of the position.
//
// Among the first p positions, round(p * share) belong to the first part, so position p belongs to it if that count
// grows there. The remaining positions form a sequence that the second part shares with the rest, and so on. After any
// number of positions, each part's count equals its weight's share to within one for each part before it. (For two
// parts this is a Sturmian word: Lothaire, "Algebraic Combinatorics on Words", chapter 2.)
//
// With shuffling, positions are first permuted in blocks; otherwise a batch size and a weight could align so that one
// rank sees only one part. Each part is read in passes, and every pass is a separate permutation. Passes continue
// across epochs: no sample of a part is repeated before all others of it were used.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/order.h"

namespace feedline::plan {

class MixedOrder final : public Order {
 public:
  // Requires: every part has samples, at least one has a positive weight; mixture->samples > 0.
  MixedOrder(std::shared_ptr<const Mixture> mixture, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t size() const override { return mixture_->samples; }
  Placed at(std::uint64_t position) const override;

 private:
  std::shared_ptr<const Mixture> mixture_;
  bool shuffle_;
  std::uint64_t seed_key_;
  std::uint64_t block_key_;
  std::vector<std::uint64_t> shares_;   // of each part but the last, as a share of what earlier parts leave, in 2^-64
  std::vector<std::uint64_t> offsets_;  // index of each part's first sample
  std::vector<std::uint64_t> begins_;   // samples of each part used by earlier epochs
  std::uint64_t total_ = 0;             // samples of all parts
};

// An epoch's positions must be below this for exact counts.
inline constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 48;

// Returns the number of samples of each part that the epochs before `epoch` have used. If the weights apply from a
// later epoch, as if they had always applied.
std::vector<std::uint64_t> used_before(const Mixture& mixture, std::uint64_t epoch);
// Returns how often part `part` appears in the first `positions` positions.
std::uint64_t count_of_part(const std::vector<Part>& parts, std::size_t part, std::uint64_t positions);
// Returns the number of positions until the first part, or all parts, are used up; more than kMostPositions if it
// exceeds that.
std::uint64_t positions_until_first(const std::vector<Part>& parts);
std::uint64_t positions_until_last(const std::vector<Part>& parts);

}  // namespace feedline::plan
