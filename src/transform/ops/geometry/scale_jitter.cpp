// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class ScaleJitter final : public OperationWith<ScaleJitter, op::ScaleJitter> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "scale_jitter";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::ScaleJitter::target_size>("target_size", {.low = 1}),
                               argument<&op::ScaleJitter::scale_range>("scale_range"),
                               argument<&op::ScaleJitter::interpolation>("interpolation")});

  std::string describe() const override {
    return "target_size=" + in_brackets(args_.target_size) + ", scale_range=" + in_brackets(args_.scale_range) +
           and_interpolation(args_.interpolation);
  }
  Properties properties() const override {
    return {.is_random = true, .moves_pixels = true, .changes_size = true, .narrows_decoding = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size({args_.target_size[0], args_.target_size[1]}));
    FEEDLINE_CHECK_OK(check_positive("scale_range", args_.scale_range));
    return image.becomes_any_size();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const float scale = draw_scale(args_.scale_range, random);
    drawer.record(Decision::Kind::kScale).scale = scale;
    return drawer.resize(jittered_size(args_, drawer.size(), scale), drawer.chosen(args_.interpolation, random));
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(scale_jitter, ScaleJitter)
