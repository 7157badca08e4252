// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of operations on patches of volumes. Geometric operations are drawn before the patch is read and change
// the map from its voxels to those of the volume, so that one copy or one interpolation applies all of them. Other
// operations change the values of images, as float32, in the order of the chain.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace feedline::transform {

using Matrix3 = std::array<std::array<double, 3>, 3>;
Matrix3 product(const Matrix3& a, const Matrix3& b);
std::string in_brackets(const std::vector<int>& numbers);  // "(0, 1)"

// Maps the voxels of a patch to voxels of the volume, both relative to the centre of the patch.
struct VolumeGeometry {
  Matrix3 matrix{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  bool interpolates = false;  // otherwise the matrix permutes and flips axes
  double fill = 0;

  // Appends an operation whose output voxel v is its input at change * v.
  void append(const Matrix3& change) { matrix = product(matrix, change); }
};

// The values of one channel of a patch, in C order.
struct VolumeValues {
  std::span<float> data;
  std::array<std::int64_t, 3> size{};
};

struct VolumeWorkspace {
  std::vector<float> first, second, third;
};

class VolumeOperation {
 public:
  virtual ~VolumeOperation() = default;
  virtual bool is_geometric() const { return false; }
  // Returns two axes that must have the same extent in a patch.
  virtual std::optional<std::pair<int, int>> equal_axes() const { return {}; }
  // Returns the largest axis that the operation uses.
  virtual int largest_axis() const { return 0; }
  virtual bool may_interpolate() const { return false; }
  // Geometric operations only: draws the change of one sample.
  virtual void draw_geometry(base::Random /*random*/, VolumeGeometry& /*geometry*/) const {}
  // Other operations only: changes the values.
  virtual void apply(base::Random /*random*/, VolumeValues /*values*/, VolumeWorkspace& /*workspace*/) const {}
};

}  // namespace feedline::transform
