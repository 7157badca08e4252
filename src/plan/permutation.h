// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace feedline::plan {

// A keyed permutation of [0, size): computes position -> sample in constant memory, for any size.
//
// A Feistel network permutes numbers of 2 * half_bits_ bits, the smallest even number of bits that can represent
// `size`. Results outside [0, size) are fed back until they are inside (cycle walking, Black and Rogaway, "Ciphers with
// arbitrary finite domains", CT-RSA 2002). A permutation that is restricted in this way is also a permutation. The
// domain is less than four times the size, so fewer than four iterations are needed on average.
class Permutation {
 public:
  // Requires: size > 0.
  Permutation(std::uint64_t size, std::uint64_t key);
  // Requires: position < size.
  std::uint64_t operator()(std::uint64_t position) const;
  // Like operator(), for consecutive positions that start at `first`. This is faster, because multiplications for
  // several positions overlap. Requires: first + values.size() <= size.
  void fill(std::uint64_t first, std::span<std::uint64_t> values) const;

 private:
  // Four rounds make a pseudo-random permutation (Luby and Rackoff); eight rounds leave a margin for tiny domains, in
  // which a round mixes few bits.
  static constexpr int kRounds = 8;

  std::uint64_t once(std::uint64_t value) const;
  void fill_some(std::uint64_t first, std::span<std::uint64_t> values) const;

  std::uint64_t size_;
  unsigned half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> round_keys_;
};

}  // namespace feedline::plan
