// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {
namespace {

class RandomRotate90 final : public OperationWith<RandomRotate90, op::RandomRotate90>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_rotate90";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomRotate90::axes>("axes"), argument<&op::RandomRotate90::p>("p")});

  std::string describe() const override { return "axes=" + in_brackets(args_.axes) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    if (args_.axes.size() != 2 || args_.axes[0] == args_.axes[1])
      return config_error("axes must be two different axes, the plane of the rotation");
    for (const int axis : args_.axes)
      if (axis < 0 || axis > 2) return config_error("axes must be 0, 1 or 2, got " + std::to_string(axis));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  bool is_geometric() const override { return true; }
  int largest_axis() const override { return std::ranges::max(args_.axes); }
  std::optional<std::pair<int, int>> equal_axes() const override { return std::pair(args_.axes[0], args_.axes[1]); }
  // Rotates as numpy.rot90 does, from the first axis towards the second.
  void draw_geometry(base::Random random, VolumeGeometry& geometry) const override {
    if (random.uniform() >= args_.p) return;
    const auto a = static_cast<std::size_t>(args_.axes[0]), b = static_cast<std::size_t>(args_.axes[1]);
    Matrix3 once{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    once[a][a] = once[b][b] = 0;
    once[a][b] = 1;
    once[b][a] = -1;
    for (std::uint32_t turns = 1 + random.below(3); turns > 0; --turns) geometry.append(once);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_rotate90, RandomRotate90)
