// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {
namespace {

class Standardize final : public OperationWith<Standardize, op::Standardize>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "standardize";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Standardize::mean>("mean"), argument<&op::Standardize::std>("std")});

  std::string_view name() const override { return "normalize"; }
  std::string describe() const override { return "mean=" + number(args_.mean) + ", std=" + number(args_.std); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = false, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    if (!std::isfinite(args_.mean)) return config_error("mean must be finite");
    if (!(std::isfinite(args_.std) && args_.std > 0))
      return config_error("std must be above 0, got " + shown(args_.std));
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random /*random*/, VolumeValues values, VolumeWorkspace& /*workspace*/) const override {
    const auto mean = static_cast<float>(args_.mean), std = static_cast<float>(args_.std);
    for (float& value : values.data) value = (value - mean) / std;
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(standardize, Standardize)
