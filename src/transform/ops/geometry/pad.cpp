// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Pad final : public OperationWith<Pad, op::Pad> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "pad";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Pad::padding>("padding"), argument<&op::Pad::fill>("fill"),
                               argument<&op::Pad::padding_mode>("padding_mode")});

  std::string describe() const override {
    return in_brackets(args_.padding) + and_border(args_.fill, args_.padding_mode);
  }
  Properties properties() const override {
    return {.moves_pixels = true,
            .changes_size = true,
            .repeats_border = args_.padding_mode != PaddingMode::kConstant,
            .runs_on_device = true,
            .adds_border = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_padding(args_.padding));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    return image.state.size ? image.becomes(padded(*image.state.size, args_.padding)) : Result<void>{};
  }
  Result<void> draw(Drawer& drawer) const override { return drawer.pad(args_.padding, args_.padding_mode, args_.fill); }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(pad, Pad)
