// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several datasets by weight, as a pure function of the position.
//
// Which part stands at position p: round(p * share) positions before p are of the first part, and so position p is if
// that count grows there; what is left over is a sequence of its own, which the second part shares with the rest, and
// so on. After any number of positions every part has come as often as its weight says, to within one for each part
// before it. (For two parts this is a Sturmian word: Lothaire, "Algebraic Combinatorics on Words", chapter 2.)
//
// Shuffled, positions are permuted in blocks first, or a batch size and a weight could line up so that one rank sees
// one part only. Each part is gone through in passes, and every pass is a permutation of its own. Passes go on from
// epoch to epoch: no sample of a part comes again before all others of it have come.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/order.h"

namespace feedline::plan {

class MixedOrder final : public Order {
 public:
  // Requires: every part has samples, one a positive weight; mixture->samples > 0.
  MixedOrder(std::shared_ptr<const Mixture> mixture, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t size() const override { return mixture_->samples; }
  Placed at(std::uint64_t position) const override;

 private:
  std::shared_ptr<const Mixture> mixture_;
  bool shuffle_;
  std::uint64_t seed_key_;
  std::uint64_t block_key_;
  std::vector<std::uint64_t> shares_;   // of each part but the last, of what the parts before it leave, in 2^-64
  std::vector<std::uint64_t> offsets_;  // index of each part's first sample
  std::vector<std::uint64_t> begins_;   // samples of each part that earlier epochs have had
  std::uint64_t total_ = 0;             // samples of all parts
};

// An epoch's positions must stay below this for the counts to be exact.
inline constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 48;

// How often part `part` stands in the first `positions` positions.
std::uint64_t count_of_part(const std::vector<Part>& parts, std::size_t part, std::uint64_t positions);
// Positions until the first part is used up, and until all are; above kMostPositions: more than that.
std::uint64_t positions_until_first(const std::vector<Part>& parts);
std::uint64_t positions_until_last(const std::vector<Part>& parts);

}  // namespace feedline::plan
