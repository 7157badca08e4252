// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomPhotometricDistort final : public OperationWith<RandomPhotometricDistort, op::RandomPhotometricDistort> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_photometric_distort";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomPhotometricDistort::brightness>("brightness"),
       argument<&op::RandomPhotometricDistort::contrast>("contrast"),
       argument<&op::RandomPhotometricDistort::saturation>("saturation"),
       argument<&op::RandomPhotometricDistort::hue>("hue"), argument<&op::RandomPhotometricDistort::p>("p")});

  std::string describe() const override {
    return "brightness=" + in_brackets(args_.brightness) + ", contrast=" + in_brackets(args_.contrast) +
           ", saturation=" + in_brackets(args_.saturation) + ", hue=" + in_brackets(args_.hue) +
           ", p=" + number(args_.p);
  }
  Properties properties() const override { return {.is_random = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    FEEDLINE_CHECK_OK(check_jitter(args_.brightness, args_.contrast, args_.saturation, args_.hue));
    return image.needs_pixels();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const DistortDrawing drawn = draw_distortion(args_, random);
    if (drawn.changes) {
      drawer.canvas().jitter(drawn.jitter);
      drawer.record(Decision::Kind::kJitter).jitter = drawn.jitter;
    }
    if (drawn.channels) {
      drawer.canvas().permute_channels(*drawn.channels);
      drawer.record(Decision::Kind::kPermutation).channels = *drawn.channels;
    }
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_photometric_distort, RandomPhotometricDistort)
