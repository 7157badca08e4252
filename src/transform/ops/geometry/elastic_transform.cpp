// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/warp.h"

namespace feedline::transform {
namespace {

constexpr double kMostSigma = 1000;  // pixels; limits the kernel's memory

class ElasticTransform final : public OperationWith<ElasticTransform, op::ElasticTransform> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "elastic_transform";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::ElasticTransform::alpha, BothDirections>("alpha"),
       argument<&op::ElasticTransform::sigma, BothDirections>("sigma"),
       argument<&op::ElasticTransform::interpolation>("interpolation"), argument<&op::ElasticTransform::fill>("fill")});

  std::string describe() const override {
    return "alpha=" + in_brackets(args_.alpha[0], args_.alpha[1]) +
           ", sigma=" + in_brackets(args_.sigma[0], args_.sigma[1]) + and_interpolation(args_.interpolation) +
           and_fill(args_.fill);
  }
  Properties properties() const override { return {.is_random = true, .moves_pixels = true, .draws_by_size = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(image.needs_bytes());
    for (const double sigma : args_.sigma)
      if (!(sigma >= 0 && sigma <= kMostSigma))
        return config_error("sigma must be from 0 to " + shown(kMostSigma) + ", got " + shown(sigma));
    if ((args_.sigma[0] == 0) != (args_.sigma[1] == 0))
      return config_error("sigma must be above 0 in both directions, or 0 in both, got " +
                          shown(Range{args_.sigma[0], args_.sigma[1]}));
    for (const double alpha : args_.alpha)
      if (!std::isfinite(alpha)) return config_error("alpha must be finite, got " + shown(alpha));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    const ElasticWarp drawn{args_.alpha, args_.sigma, drawer.key(), drawer.stream()};
    return drawer.warp({drawn, drawer.chosen_with_noise(args_.interpolation), args_.fill});
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(elastic_transform, ElasticTransform)
