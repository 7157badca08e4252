// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

constexpr double kMostRatio = 120;

class AddNoise final : public OperationWith<AddNoise, op::AddNoise> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "add_noise";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::AddNoise::noise>("noise"), argument<&op::AddNoise::snr>("snr"), argument<&op::AddNoise::p>("p")});

  std::string describe() const override {
    return std::to_string(args_.noise.size()) + " files, snr=" + in_brackets(args_.snr) + ", p=" + number(args_.p);
  }
  Properties properties() const override { return {.stage = Stage::kAudio, .is_random = true, .noise = &args_}; }
  Result<void> infer(Inference& /*image*/) const override {
    if (args_.noise.empty()) return config_error("noise must name at least one file");
    FEEDLINE_CHECK_OK(check_between("snr", args_.snr, -kMostRatio, kMostRatio));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(add_noise, AddNoise)
