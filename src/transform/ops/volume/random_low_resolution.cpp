// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/volume/volume_kernels.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {
namespace {

class RandomLowResolution final : public OperationWith<RandomLowResolution, op::RandomLowResolution>,
                                  public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_low_resolution";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomLowResolution::scale>("scale"), argument<&op::RandomLowResolution::p>("p")});

  std::string describe() const override { return "scale=" + in_brackets(args_.scale) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_between("scale", args_.scale, 0.01, 1));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random random, VolumeValues values, VolumeWorkspace& workspace) const override {
    if (random.uniform() >= args_.p) return;
    const double scale = random.uniform(args_.scale.low, args_.scale.high);
    std::array<std::int64_t, 3> small;
    for (std::size_t i = 0; i < 3; ++i)
      small[i] = std::max<std::int64_t>(std::llround(static_cast<double>(values.size[i]) * scale), 1);
    // the nearest voxels, with aligned outer edges
    const auto source = [&](std::size_t axis, std::int64_t i) {
      return (2 * i + 1) * values.size[axis] / (2 * small[axis]);
    };
    auto& low = workspace.first;
    low.resize(static_cast<std::size_t>(small[0] * small[1] * small[2]));
    float* to = low.data();
    for (std::int64_t x = 0; x < small[0]; ++x)
      for (std::int64_t y = 0; y < small[1]; ++y)
        for (std::int64_t z = 0; z < small[2]; ++z)
          *to++ = values.data[static_cast<std::size_t>((source(0, x) * values.size[1] + source(1, y)) * values.size[2] +
                                                       source(2, z))];
    SamplingGrid grid;
    for (std::size_t i = 0; i < 3; ++i) {
      grid.steps[i][i] = static_cast<double>(small[i]) / static_cast<double>(values.size[i]);
      grid.first[i] = grid.steps[i][i] / 2 - 0.5;
    }
    stretch(low, small, grid, values, workspace);
  }

 private:
  // Interpolates linearly; positions outside the outer voxels have their values.
  static void stretch(const std::vector<float>& low, const std::array<std::int64_t, 3>& small, const SamplingGrid& grid,
                      VolumeValues values, VolumeWorkspace& workspace) {
    const auto [x, y, z] = values.size;
    auto& one = workspace.second;
    one.resize(static_cast<std::size_t>(small[0] * small[1] * z));
    stretch_axis(low.data(), one.data(), small[0] * small[1], small[2], z, 1, grid.first[2], grid.steps[2][2]);
    auto& two = workspace.third;
    two.resize(static_cast<std::size_t>(small[0] * y * z));
    stretch_axis(one.data(), two.data(), small[0], small[1], y, z, grid.first[1], grid.steps[1][1]);
    stretch_axis(two.data(), values.data.data(), 1, small[0], x, y * z, grid.first[0], grid.steps[0][0]);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_low_resolution, RandomLowResolution)
