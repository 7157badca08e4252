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
// Requires: at least one value.
std::pair<float, float> least_and_most(std::span<const float> values);
// Computes (value - from) * factor + to for each value.
void rescale(std::span<float> values, float from, float factor, float to);
void clamp(std::span<float> values, float least, float most);
// Raises `sign` times each value, scaled from [low, low + range] to [0, 1], to the power of gamma, and scales it back.
void raise_to_power(std::span<float> values, float sign, float low, float range, float gamma);
// Interpolates linearly along one axis, from `from` to `to` values, at the positions first + i * step; positions
// outside the outer values have their values. outer, inner: the number of lines before and after the axis in memory.
void stretch_axis(const float* in, float* out, std::int64_t outer, std::int64_t from, std::int64_t to,
                  std::int64_t inner, double first, double step);
// Blurs with a Gaussian along each axis; beyond the border, the patch is mirrored at its outer voxels' edges.
void blur(VolumeValues values, const std::array<double, 3>& sigma, VolumeWorkspace& workspace);
// Adds normal numbers with this standard deviation.
void add_noise(std::span<float> values, double deviation, base::Random random);

}  // namespace feedline::transform
