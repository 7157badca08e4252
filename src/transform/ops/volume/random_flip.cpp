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

class RandomFlip final : public OperationWith<RandomFlip, op::RandomFlip>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_flip";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomFlip::axes>("axes"), argument<&op::RandomFlip::p>("p")});

  std::string describe() const override { return "axes=" + in_brackets(args_.axes) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    for (const int axis : args_.axes)
      if (axis < 0 || axis > 2) return config_error("axes must be 0, 1 or 2, got " + std::to_string(axis));
    if (args_.axes.empty()) return config_error("axes must name at least one axis");
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  bool is_geometric() const override { return true; }
  int largest_axis() const override { return std::ranges::max(args_.axes); }
  void draw_geometry(base::Random random, VolumeGeometry& geometry) const override {
    Matrix3 change{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (const int axis : args_.axes)
      if (random.uniform() < args_.p) change[static_cast<std::size_t>(axis)][static_cast<std::size_t>(axis)] = -1;
    geometry.append(change);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_flip, RandomFlip)
