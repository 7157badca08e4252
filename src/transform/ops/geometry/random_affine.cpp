// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/warp.h"

namespace feedline::transform {
namespace {

class RandomAffine final : public OperationWith<RandomAffine, op::RandomAffine> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_affine";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomAffine::degrees, Angles>("degrees"), argument<&op::RandomAffine::translate>("translate"),
       argument<&op::RandomAffine::scale>("scale"), argument<&op::RandomAffine::shear_x>("shear_x"),
       argument<&op::RandomAffine::shear_y>("shear_y"), argument<&op::RandomAffine::interpolation>("interpolation"),
       argument<&op::RandomAffine::fill>("fill"), argument<&op::RandomAffine::center>("center")});

  std::string describe() const override {
    std::string text = "degrees=" + in_brackets(args_.degrees);
    if (args_.translate) text += ", translate=" + in_brackets((*args_.translate)[0], (*args_.translate)[1]);
    if (args_.scale) text += ", scale=" + in_brackets(*args_.scale);
    if (args_.shear_x) {
      text += ", shear=(" + number(args_.shear_x->low) + ", " + number(args_.shear_x->high);
      if (args_.shear_y) text += ", " + number(args_.shear_y->low) + ", " + number(args_.shear_y->high);
      text += ")";
    }
    return text + and_center(args_.center) + and_interpolation(args_.interpolation, Interpolation::kNearest) +
           and_fill(args_.fill);
  }
  Properties properties() const override { return {.is_random = true, .moves_pixels = true, .draws_by_size = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_degrees("degrees", args_.degrees));
    if (args_.translate)
      for (const double share : *args_.translate)
        if (!(share >= 0 && share <= 1)) return config_error("translate must be from 0 to 1, got " + shown(share));
    if (args_.scale) FEEDLINE_CHECK_OK(check_positive("scale", *args_.scale));
    for (const auto& shear : {args_.shear_x, args_.shear_y})
      if (shear) FEEDLINE_CHECK_OK(check_degrees("shear", *shear));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const AffineWarp drawn = draw_affine(args_, drawer.size(), random);
    return drawer.warp({drawn, drawer.chosen(args_.interpolation, random), args_.fill});
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_affine, RandomAffine)
