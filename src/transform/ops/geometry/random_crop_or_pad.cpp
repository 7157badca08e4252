// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomCropOrPad final : public OperationWith<RandomCropOrPad, op::RandomCropOrPad> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_crop_or_pad";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomCropOrPad::size>("size"), argument<&op::RandomCropOrPad::fill>("fill"),
       argument<&op::RandomCropOrPad::padding_mode>("padding_mode")});

  std::string describe() const override { return sides(args_.size) + and_border(args_.fill, args_.padding_mode); }
  Properties properties() const override {
    return {.is_random = true,
            .moves_pixels = true,
            .changes_size = true,
            .draws_by_size = true,
            .narrows_decoding = true,
            .repeats_border = args_.padding_mode != PaddingMode::kConstant};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const Size whole = drawer.size();
    Box box = draw_crop_or_pad(whole, args_.size, random);
    if (drawer.canvas().moves_numbers()) {
      drawer.crop(box);
      return {};
    }
    const Padding padding{std::max(-box.left, 0), std::max(-box.top, 0),
                          std::max(box.left + box.width - whole.width, 0),
                          std::max(box.top + box.height - whole.height, 0)};
    FEEDLINE_CHECK_OK(drawer.pad(padding, args_.padding_mode, args_.fill));
    box.left = std::max(box.left, 0);
    box.top = std::max(box.top, 0);
    drawer.crop(box);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_crop_or_pad, RandomCropOrPad)
