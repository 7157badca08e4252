// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Letterbox final : public OperationWith<Letterbox, op::Letterbox> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "letterbox";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Letterbox::size>("size"), argument<&op::Letterbox::fill>("fill"),
       argument<&op::Letterbox::interpolation>("interpolation"), argument<&op::Letterbox::scale_up>("scaleup"),
       argument<&op::Letterbox::position, FlagFor<PadPosition::kCenter, PadPosition::kTopLeft>>("center")});

  std::string describe() const override {
    return sides(args_.size) + and_any_fill(args_.fill) + and_interpolation(args_.interpolation) +
           (args_.scale_up ? "" : ", scaleup=False") + (args_.position == PadPosition::kCenter ? "" : ", center=False");
  }
  Properties properties() const override {
    return {.is_random = args_.interpolation == Interpolation::kRandom,
            .moves_pixels = true,
            .changes_size = true,
            .depends_on_pillow = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    const Size resized = letterboxed_size(drawer.size(), args_);
    FEEDLINE_CHECK_OK(drawer.resize(resized, drawer.chosen(args_.interpolation)));
    return drawer.pad(plan_pad_to(drawer.size(), args_.size, args_.position), PaddingMode::kConstant, args_.fill);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(letterbox, Letterbox)
