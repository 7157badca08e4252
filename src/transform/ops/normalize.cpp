// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/kernels/pointwise.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Normalize final : public OperationWith<Normalize, op::Normalize> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "normalize";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Normalize::mean>("mean"), argument<&op::Normalize::std>("std")});

  std::string describe() const override { return "mean=" + listed(args_.mean) + ", std=" + listed(args_.std); }
  Properties properties() const override {
    return {.stage = Stage::kValues, .makes_values = true, .runs_on_device = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(image.check_per_channel("mean", args_.mean));
    FEEDLINE_CHECK_OK(image.check_per_channel("std", args_.std));
    DType& dtype = image.state.dtype;
    for (const float std : args_.std)
      if (std == 0 || (dtype == DType::kFloat16 && from_half(to_half(std)) == 0))
        return config_error("std must not be 0, got " + shown(std) + (std == 0 ? "" : ", which is 0 as float16"));
    if (dtype == DType::kUint8) dtype = DType::kFloat32;
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    drawer.begin_output();
    return {};
  }
  void convert(ValueSteps& steps) const override { steps.normalize(args_); }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(normalize, Normalize)
