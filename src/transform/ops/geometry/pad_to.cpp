// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class PadTo final : public OperationWith<PadTo, op::PadTo> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "pad_to";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::PadTo::size>("size"), argument<&op::PadTo::fill>("fill"),
       argument<&op::PadTo::padding_mode>("padding_mode"), argument<&op::PadTo::position>("position")});

  std::string describe() const override {
    return sides(args_.size) + and_border(args_.fill, args_.padding_mode) +
           (args_.position == PadPosition::kCenter ? "" : ", position=top_left");
  }
  Properties properties() const override {
    return {.moves_pixels = true, .changes_size = true, .repeats_border = args_.padding_mode != PaddingMode::kConstant};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    if (image.state.size && !fits(*image.state.size)) return config_error(too_large(*image.state.size));
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    const Size image = drawer.size();
    if (!fits(image)) return drawer.refuse(too_large(image) + "; letterbox or a crop before it would help");
    return drawer.pad(plan_pad_to(image, args_.size, args_.position), args_.padding_mode, args_.fill);
  }

 private:
  bool fits(Size image) const { return image.height <= args_.size.height && image.width <= args_.size.width; }
  std::string too_large(Size image) const {
    return "the image, which is " + shown(image) + " at this point, is larger than " + shown(args_.size);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(pad_to, PadTo)
