// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

constexpr auto kRounding = std::to_array<Word<bool>>({{"even", false}, {"down", true}});

class CenterCrop final : public OperationWith<CenterCrop, op::CenterCrop> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "center_crop";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::CenterCrop::size>("size"), argument<&op::CenterCrop::fill>("fill"),
                               argument<&op::CenterCrop::padding_mode>("padding_mode"),
                               argument<&op::CenterCrop::rounds_down, WordKind<kRounding>>("rounding")});

  std::string describe() const override {
    return sides(args_.size) + and_border(args_.fill, args_.padding_mode) +
           (args_.rounds_down ? ", rounding=down" : "");
  }
  Properties properties() const override {
    return {.moves_pixels = true,
            .changes_size = true,
            .narrows_decoding = true,
            .repeats_border = args_.padding_mode != PaddingMode::kConstant,
            .runs_on_device = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    const CenterCropPlan plan = plan_center_crop(drawer.size(), args_.size, args_.rounds_down);
    if (drawer.canvas().moves_numbers()) {
      drawer.canvas().crop(central_box(drawer.size(), args_));
    } else {
      drawer.canvas().pad(plan.padding, args_.padding_mode, args_.fill);
      drawer.canvas().crop(plan.box);
    }
    drawer.record_crop(plan.box);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(center_crop, CenterCrop)
