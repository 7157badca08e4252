// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {
namespace {

class RandomAffine3d final : public OperationWith<RandomAffine3d, op::RandomAffine3d>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_affine_3d";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomAffine3d::degrees>("degrees"), argument<&op::RandomAffine3d::scale>("scale"),
       argument<&op::RandomAffine3d::p>("p"), argument<&op::RandomAffine3d::fill>("fill")});

  std::string_view name() const override { return is_zoom() ? "random_zoom" : "random_affine"; }
  std::string describe() const override {
    return (is_zoom() ? "" : "degrees=" + in_brackets(args_.degrees) + ", ") + "scale=" + in_brackets(args_.scale) +
           ", p=" + number(args_.p) + (args_.fill == 0 ? "" : ", fill=" + number(args_.fill));
  }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_degrees("degrees", args_.degrees));
    FEEDLINE_CHECK_OK(check_positive("scale", args_.scale));
    if (!(args_.scale.low >= 0.01)) return config_error("scale must be at least 0.01, got " + shown(args_.scale));
    if (!std::isfinite(args_.fill)) return config_error("fill must be finite");
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  bool is_geometric() const override { return true; }
  bool may_interpolate() const override { return true; }
  int largest_axis() const override { return 2; }
  void draw_geometry(base::Random random, VolumeGeometry& geometry) const override {
    if (random.uniform() >= args_.p) return;
    const double step = random.uniform(1 / args_.scale.high, 1 / args_.scale.low);  // in voxels of the volume
    Matrix3 change{{{step, 0, 0}, {0, step, 0}, {0, 0, step}}};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double angle = random.uniform(args_.degrees.low, args_.degrees.high) * std::numbers::pi / 180;
      const std::size_t a = (axis + 1) % 3, b = (axis + 2) % 3;
      Matrix3 rotation{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
      rotation[a][a] = rotation[b][b] = std::cos(angle);
      rotation[a][b] = -std::sin(angle);
      rotation[b][a] = std::sin(angle);
      change = product(change, rotation);
    }
    geometry.append(change);
    geometry.interpolates = true;
    geometry.fill = args_.fill;
  }

 private:
  bool is_zoom() const { return args_.degrees.low == 0 && args_.degrees.high == 0; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_affine_3d, RandomAffine3d)
