// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class SpeedPerturbation final : public OperationWith<SpeedPerturbation, op::SpeedPerturbation> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "speed_perturbation";
  static constexpr auto kArguments = std::to_array<Argument>({argument<&op::SpeedPerturbation::factors>("factors")});

  std::string describe() const override {
    std::string text;
    for (const double factor : args_.factors) text += (text.empty() ? "" : ", ") + number(factor);
    return "factors=(" + text + ")";
  }
  Properties properties() const override {
    return {.stage = Stage::kAudio, .is_random = args_.factors.size() > 1, .speed = &args_};
  }
  Result<void> infer(Inference& /*image*/) const override {
    if (args_.factors.empty()) return config_error("factors must have at least one number");
    for (const double factor : args_.factors)
      if (!(factor >= 0.1 && factor <= 10)) return config_error("factors are from 0.1 to 10, got " + shown(factor));
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(speed_perturbation, SpeedPerturbation)
