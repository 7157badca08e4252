// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/warp.h"

namespace feedline::transform {
namespace {

class RandomRotation final : public OperationWith<RandomRotation, op::RandomRotation> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_rotation";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomRotation::degrees, Angles>("degrees"),
       argument<&op::RandomRotation::interpolation>("interpolation"), argument<&op::RandomRotation::expand>("expand"),
       argument<&op::RandomRotation::center>("center"), argument<&op::RandomRotation::fill>("fill")});

  std::string describe() const override {
    return "degrees=" + in_brackets(args_.degrees) + (args_.expand ? ", expand=True" : "") + and_center(args_.center) +
           and_interpolation(args_.interpolation, Interpolation::kNearest) + and_fill(args_.fill);
  }
  // Treated as an operation that changes the size, even if the rotation does not expand the image.
  Properties properties() const override { return {.is_random = true, .moves_pixels = true, .changes_size = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_degrees("degrees", args_.degrees));
    FEEDLINE_CHECK_OK(image.check_interpolation(args_.interpolation));
    if (args_.expand) image.state.size.reset();
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const RotationWarp drawn = draw_rotation(args_, random);
    return drawer.warp({drawn, drawer.chosen(args_.interpolation, random), args_.fill});
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_rotation, RandomRotation)
