// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mixes datasets by weight. The part to which a sample belongs depends only on the sample's position.
//
// Of the first p positions, round(p * share) belong to the first part, so a position belongs to it if this count
// increases there. The remaining positions form a sequence that is divided between the second part and the rest in the
// same way, and so on. After any number of positions, the count of each part equals its weighted share to within one
// for each part before it. (For two parts this is a Sturmian word: Lothaire, "Algebraic Combinatorics on Words",
// chapter 2.)
//
// With shuffling, positions are first permuted in blocks; otherwise, a batch size and a weight could align so that a
// rank receives only one part. Each part is read in passes, and every pass is a separate permutation. Passes continue
// across epochs: no sample of a part is repeated before all other samples of the part have been used.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/order.h"

namespace feedline::plan {

class MixedOrder final : public Order {
 public:
  // Requires: every part has samples, at least one part has a positive weight, and mixture->samples > 0.
  MixedOrder(std::shared_ptr<const Mixture> mixture, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t size() const override { return mixture_->samples; }
  OrderedSample at(std::uint64_t position) const override;

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

// For exact counts, positions in an epoch must be below this value.
inline constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 48;

// Returns how many samples of each part the epochs before `epoch` have used. If the weights apply only from a later
// epoch, the result is computed as if they had always applied.
std::vector<std::uint64_t> used_before(const Mixture& mixture, std::uint64_t epoch);
// Returns how often part `part` appears in the first `positions` positions.
std::uint64_t count_of_part(const std::vector<Part>& parts, std::size_t part, std::uint64_t positions);
// Returns the number of positions after which the first part, or all parts, are used up; if this number exceeds
// kMostPositions, returns any value above kMostPositions.
std::uint64_t positions_until_first(const std::vector<Part>& parts);
std::uint64_t positions_until_last(const std::vector<Part>& parts);

}  // namespace feedline::plan
