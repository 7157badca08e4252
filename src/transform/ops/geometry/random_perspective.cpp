// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/warp.h"

namespace feedline::transform {
namespace {

class RandomPerspective final : public OperationWith<RandomPerspective, op::RandomPerspective> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_perspective";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomPerspective::distortion_scale>("distortion_scale"), argument<&op::RandomPerspective::p>("p"),
       argument<&op::RandomPerspective::interpolation>("interpolation"),
       argument<&op::RandomPerspective::fill>("fill")});

  std::string describe() const override {
    return "distortion_scale=" + number(args_.distortion_scale) + ", p=" + number(args_.p) +
           and_interpolation(args_.interpolation) + and_fill(args_.fill);
  }
  Properties properties() const override { return {.is_random = true, .moves_pixels = true, .draws_by_size = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    if (!(args_.distortion_scale >= 0 && args_.distortion_scale <= 1))
      return config_error("distortion_scale must be from 0 to 1, got " + shown(args_.distortion_scale));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    if (!draw_coin(args_.p, random)) return {};
    const PerspectiveWarp drawn = draw_perspective(args_.distortion_scale, drawer.size(), random);
    return drawer.warp({drawn, drawer.chosen(args_.interpolation, random), args_.fill});
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_perspective, RandomPerspective)
