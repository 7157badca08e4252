// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class ColorJitter final : public OperationWith<ColorJitter, op::ColorJitter> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "color_jitter";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::ColorJitter::brightness, Factor>("brightness"),
       argument<&op::ColorJitter::contrast, Factor>("contrast"),
       argument<&op::ColorJitter::saturation, Factor>("saturation"), argument<&op::ColorJitter::hue, HueShift>("hue")});

  std::string describe() const override {
    return "brightness=" + in_brackets(args_.brightness) + ", contrast=" + in_brackets(args_.contrast) +
           ", saturation=" + in_brackets(args_.saturation) + ", hue=" + in_brackets(args_.hue);
  }
  Properties properties() const override { return {.is_random = true, .runs_on_device = true, .colour_changes = 4}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_jitter(args_.brightness, args_.contrast, args_.saturation, args_.hue));
    return image.needs_pixels();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const JitterDrawing drawn = draw_jitter(args_, random);
    drawer.canvas().jitter(drawn);
    drawer.record(Decision::Kind::kJitter).jitter = drawn;
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(color_jitter, ColorJitter)
