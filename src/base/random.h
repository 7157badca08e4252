// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC11). A generator is a value keyed by its purpose. Generators are not tied to threads, and a sample always draws
// the same numbers.

#include <array>
#include <cstdint>

namespace feedline::base {

// Multipliers and Weyl increments of Philox4x32, from the paper's table and the Random123 reference. The increments are
// derived from the golden ratio and sqrt(3) - 1.
inline constexpr std::uint32_t kPhiloxMultipliers[] = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::uint32_t kPhiloxWeyl[] = {0x9E3779B9u, 0xBB67AE85u};
inline constexpr int kPhiloxRounds = 10;

// The block function: maps a 128-bit counter and a 64-bit key to 128 bits of output.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Identifies a sample in a run; used as the key of its random numbers.
struct SampleKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;  // index in the dataset, not position in the epoch
};

// A stream of random numbers for one operation on one sample. A copy continues at the same position. Not thread-safe.
class Random {
 public:
  // stream: the purpose within the sample, by convention the operation's index in its chain.
  Random(const SampleKey& key, std::uint32_t stream);

  std::uint32_t bits();                      // Returns 32 uniform bits.
  double uniform();                          // Returns a number in [0, 1) with 53 bits, from two draws.
  double uniform(double low, double high);   // Returns low + (high - low) * uniform().
  std::uint32_t below(std::uint32_t bound);  // Returns an unbiased uniform number in [0, bound). Requires: bound > 0.

  // The inputs of philox4x32() for this stream's blocks, starting with `first`, for kernels that generate many numbers
  // at once.
  struct Blocks {
    std::array<std::uint32_t, 4> counter;  // [0] is the block counter
    std::array<std::uint32_t, 2> key;
  };
  Blocks blocks(std::uint32_t first) const { return {{first, counter_[1], counter_[2], counter_[3]}, key_}; }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;  // [0] block number, [1] stream, [2..3] sample
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
};

// Mixes 64 bits (splitmix64's finalizer), to combine seed and epoch into a 64-bit key.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace feedline::base
