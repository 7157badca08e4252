// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/operation.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {

// A box of a volume in memory: voxel (x, y, z) is data[(x - begin[0]) * plane + (y - begin[1]) * row + z - begin[2]].
struct VolumeBox {
  const std::byte* data = nullptr;
  DType dtype = DType::kUint8;
  std::array<std::int64_t, 3> begin{}, size{};
  std::int64_t plane = 0, row = 0;  // elements
};

// The position in the volume of the first voxel of a patch, and the steps from voxel to voxel along each axis.
struct SamplingGrid {
  std::array<double, 3> first{};
  Matrix3 steps{};  // steps[axis of the volume][axis of the patch]
};
SamplingGrid grid_of(const VolumeGeometry& geometry, std::span<const std::int64_t, 3> origin,
                     std::span<const std::int64_t, 3> size);

// Interpolates linearly between voxels; voxels outside the box count as `fill`.
void sample_linear(const VolumeBox& box, const SamplingGrid& grid, float fill, std::span<const std::int64_t, 3> size,
                   float* out);
// Copies the nearest voxels, of the same dtype; those outside the box are 0.
void sample_nearest(const VolumeBox& box, const SamplingGrid& grid, std::span<const std::int64_t, 3> size,
                    std::byte* out);

// Converts `count` numbers to float32. Requires: the dtype is not bfloat16.
void to_floats(DType dtype, const std::byte* in, std::size_t count, float* out);

// Draws below or above 1 with equal probability, if the range has both, and uniformly there.
double draw_around_one(base::Random& random, const Range& range);

// Returns the mean and the standard deviation.
std::pair<double, double> mean_and_std(std::span<const float> values);
// Blurs with a Gaussian along each axis; beyond the border, the patch is mirrored at its outer voxels' edges.
void blur(VolumeValues values, const std::array<double, 3>& sigma, VolumeWorkspace& workspace);
// Adds normal numbers with this standard deviation.
void add_noise(std::span<float> values, double deviation, base::Random random);

}  // namespace feedline::transform
