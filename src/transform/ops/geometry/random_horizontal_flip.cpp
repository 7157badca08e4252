// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomHorizontalFlip final : public OperationWith<RandomHorizontalFlip, op::RandomHorizontalFlip> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_horizontal_flip";
  static constexpr auto kArguments = std::to_array<Argument>({argument<&op::RandomHorizontalFlip::p>("p")});

  std::string describe() const override { return "p=" + number(args_.p); }
  Properties properties() const override {
    return {.is_random = true, .moves_pixels = true, .is_flip = true, .runs_on_device = true};
  }
  Result<void> infer(Inference& /*image*/) const override { return check_probability(args_.p); }
  Result<void> draw(Drawer& drawer) const override { return drawer.flip(args_.p, true); }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_horizontal_flip, RandomHorizontalFlip)
