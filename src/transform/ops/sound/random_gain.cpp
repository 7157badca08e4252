// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

constexpr double kMostDecibels = 120;

class RandomGain final : public OperationWith<RandomGain, op::RandomGain> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_gain";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomGain::gain>("gain"), argument<&op::RandomGain::p>("p")});

  std::string describe() const override { return "gain=" + in_brackets(args_.gain) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kAudio, .is_random = true, .gain = &args_}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_between("gain", args_.gain, -kMostDecibels, kMostDecibels));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_gain, RandomGain)
