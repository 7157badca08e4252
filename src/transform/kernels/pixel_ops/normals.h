// SPDX-License-Identifier: Apache-2.0
#pragma once

// Standard normal numbers from Philox blocks (Box-Muller), in float without fused multiply-add, so that all kernels
// produce the same bits. Words 0 and 1 of a block produce two numbers, and words 2 and 3 produce two more. The first
// word of a pair determines the radius. The second word provides a bit for the sign, a bit for the swap, and 30 bits
// for the angle, which is within an eighth of the circle on both sides of an axis.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace feedline::transform {

// Numbers are stored in groups: number k of block b in a group has the index k * kGroupBlocks + b.
inline constexpr std::size_t kGroupBlocks = 16;
inline constexpr std::size_t kGroupNormals = 4 * kGroupBlocks;
constexpr std::size_t normal_groups(std::size_t count) { return (count + kGroupNormals - 1) / kGroupNormals; }

namespace normals {

// Coefficients of Chebyshev fits, highest power first: log(1 + f) / f for 1 + f from sqrt(1/2) to sqrt(2); sin(pi/2 x)
// / x and cos(pi/2 x) as functions of x * x for x from -1/2 to 1/2.
inline constexpr float kLog[] = {0.0874394551f, -0.143773302f, 0.149490952f,  -0.165606961f, 0.199569777f,
                                 -0.250021547f, 0.333341837f,  -0.499999881f, 1.0f};
inline constexpr float kSine[] = {-0.0046021631f, 0.0796802193f, -0.64596349f, 1.57079637f};
inline constexpr float kCosine[] = {0.000903629872f, -0.0208600704f, 0.253669202f, -1.23370051f, 1.0f};
inline constexpr float kLogOf2 = 0.693147181f;
inline constexpr std::int32_t kRootHalf = 0x3f3504f3;  // the bits of sqrt(1/2)
inline constexpr std::uint32_t kPlaceMask = 0x3fffffff, kSwapBit = 0x40000000, kSignBit = 0x80000000;

template <std::size_t kCount>
float polynomial(const float (&factors)[kCount], float x) {
  float sum = factors[0];
  for (std::size_t i = 1; i < kCount; ++i) sum = sum * x + factors[i];
  return sum;
}

// Computes two numbers from two words, with the same arithmetic as the vector kernels.
inline std::pair<float, float> of_words(std::uint32_t first, std::uint32_t second) {
  const float uniform = (static_cast<float>(static_cast<std::int32_t>(first >> 1)) + 1.0f) * 0x1p-31f;  // above 0
  const auto bits = std::bit_cast<std::int32_t>(uniform);
  const std::int32_t exponent = (bits - kRootHalf) >> 23;
  const float f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f;
  const float logarithm = polynomial(kLog, f) * f + static_cast<float>(exponent) * kLogOf2;
  const float radius = std::sqrt(logarithm * -2.0f);
  const float x = static_cast<float>(static_cast<std::int32_t>(second & kPlaceMask)) * 0x1p-30f - 0.5f;
  const float along = polynomial(kCosine, x * x), across = polynomial(kSine, x * x) * x;
  const auto sign = std::bit_cast<std::uint32_t>(radius * along) ^ (second & kSignBit);
  const std::pair<float, float> made{std::bit_cast<float>(sign), radius * across};
  return second & kSwapBit ? std::pair(made.second, made.first) : made;
}

}  // namespace normals

}  // namespace feedline::transform
