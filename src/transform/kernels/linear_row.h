// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear interpolation of a volume at the points of one row of a patch, which lie on a line through the volume. The
// caller ensures that all eight neighbours of every point are in the volume. Stateless and thread-safe.

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace feedline::transform {

inline constexpr std::int64_t kMostGathered = 1 << 29;  // values of a volume, whose byte offsets fit into 32 bits

// The points k, begin <= k < end, are at first + k * step, in voxels along x, y and z. plane, row: the distance of
// neighbours along x and y in the volume, in values; neighbours along z are next to each other.
struct LinearRow {
  std::int64_t plane = 0, row = 0;
  std::array<float, 3> first{}, step{};
  std::int64_t begin = 0, end = 0;
};

using NeighbourPair = float __attribute__((vector_size(8)));

// Two neighbours along z.
template <typename T>
NeighbourPair pair_at(const T* data) {
  if constexpr (std::is_same_v<T, float>) {
    NeighbourPair pair;
    std::memcpy(&pair, data, sizeof pair);
    return pair;
  } else {
    return NeighbourPair{static_cast<float>(data[0]), static_cast<float>(data[1])};
  }
}

// Writes out[k] for each point. The vector kernels compute the same sums in the same order.
template <typename T>
void linear_row(const T* volume, const LinearRow& points, float* out) {
  const auto& [plane, row, first, step, begin, end] = points;
  for (std::int64_t k = begin; k < end; ++k) {
    const auto t = static_cast<float>(k);
    const float px = first[0] + t * step[0], py = first[1] + t * step[1], pz = first[2] + t * step[2];
    const auto x = static_cast<std::int32_t>(px), y = static_cast<std::int32_t>(py), z = static_cast<std::int32_t>(pz);
    const float wx = px - static_cast<float>(x), wy = py - static_cast<float>(y), wz = pz - static_cast<float>(z);
    const T* const at = volume + x * plane + y * row + z;
    const NeighbourPair near = pair_at(at), below = pair_at(at + row);
    const NeighbourPair next = pair_at(at + plane), far = pair_at(at + plane + row);
    const NeighbourPair a = near + wy * (below - near), b = next + wy * (far - next);
    const NeighbourPair c = a + wx * (b - a);
    out[k] = c[0] + wz * (c[1] - c[0]);
  }
}

}  // namespace feedline::transform
