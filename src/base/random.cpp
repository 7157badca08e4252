// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include "base/check.h"

namespace feedline::base {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = static_cast<std::uint64_t>(kPhiloxMultipliers[0]) * c[0];
    const std::uint64_t product1 = static_cast<std::uint64_t>(kPhiloxMultipliers[1]) * c[2];
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(product0)};
    k[0] += kPhiloxWeyl[0];
    k[1] += kPhiloxWeyl[1];
  }
  return c;
}

Random::Random(const SampleKey& key, std::uint32_t stream) {
  // seed and epoch share the 64-bit key, mixed sequentially so that (1, 2) and (2, 1) differ
  const std::uint64_t folded = mix64(mix64(key.seed + 0x9E3779B97F4A7C15u) ^ (key.epoch + 0x9E3779B97F4A7C15u));
  key_ = {static_cast<std::uint32_t>(folded), static_cast<std::uint32_t>(folded >> 32)};
  counter_ = {0, stream, static_cast<std::uint32_t>(key.sample), static_cast<std::uint32_t>(key.sample >> 32)};
}

std::uint32_t Random::bits() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double Random::uniform() {
  const std::uint64_t high = bits();
  const std::uint64_t low = bits();
  return static_cast<double>(((high << 32) | low) >> 11) * 0x1.0p-53;
}

double Random::uniform(double low, double high) { return low + (high - low) * uniform(); }

std::uint32_t Random::below(std::uint32_t bound) {
  FEEDLINE_CHECK(bound > 0);
  // Lemire's multiply-shift with rejection of the few biased values (arXiv:1805.10941)
  const std::uint32_t reject_under = (0u - bound) % bound;
  while (true) {
    const std::uint64_t product = static_cast<std::uint64_t>(bits()) * bound;
    if (static_cast<std::uint32_t>(product) >= reject_under) return static_cast<std::uint32_t>(product >> 32);
  }
}

}  // namespace feedline::base
