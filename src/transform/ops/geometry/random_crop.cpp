// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomCrop final : public OperationWith<RandomCrop, op::RandomCrop> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_crop";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomCrop::size>("size"), argument<&op::RandomCrop::padding>("padding"),
       argument<&op::RandomCrop::pad_if_needed>("pad_if_needed"), argument<&op::RandomCrop::fill>("fill"),
       argument<&op::RandomCrop::padding_mode>("padding_mode")});

  std::string describe() const override {
    std::string text = sides(args_.size);
    if (any(args_.padding)) text += ", padding=" + in_brackets(args_.padding);
    if (args_.pad_if_needed) text += ", pad_if_needed=True";
    return any(args_.padding) || args_.pad_if_needed ? text + and_border(args_.fill, args_.padding_mode) : text;
  }
  Properties properties() const override {
    return {.is_random = true,
            .moves_pixels = true,
            .changes_size = true,
            .draws_by_size = true,
            .narrows_decoding = !args_.pad_if_needed && !any(args_.padding),
            .repeats_border = args_.padding_mode != PaddingMode::kConstant,
            .runs_on_device = true,
            .adds_border = any(args_.padding),
            .pads_if_needed = args_.pad_if_needed};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(check_padding(args_.padding));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    if (image.state.size && !args_.pad_if_needed) {
      const Size whole = padded(*image.state.size, args_.padding);
      if (!fits(whole)) return config_error(too_small(whole));
    }
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    pad(drawer.canvas());
    const Size whole = drawer.size();
    if (!fits(whole)) return drawer.refuse(too_small(whole));
    base::Random random = drawer.random();
    const Box box = draw_crop(whole, args_.size, random);
    if (box.width != whole.width || box.height != whole.height) drawer.canvas().crop(box);
    drawer.record_crop(box);
    return {};
  }

 private:
  bool fits(Size image) const { return image.height >= args_.size.height && image.width >= args_.size.width; }
  std::string too_small(Size image) const {
    return "the crop of " + shown(args_.size) + " is larger than the image, which is " + shown(image) +
           " at this point; use pad_if_needed";
  }
  // torchvision moves boxes and points by the sum of all borders.
  void pad(Canvas& canvas) const {
    const RandomCropPadding padding = plan_random_crop_padding(canvas.size(), args_);
    if (canvas.moves_numbers()) {
      const Padding all = padding.sum();
      if (any(all)) canvas.pad(all, args_.padding_mode, args_.fill);
      return;
    }
    canvas.pad(padding.always, args_.padding_mode, args_.fill);
    canvas.pad(padding.width_needed, args_.padding_mode, args_.fill);
    canvas.pad(padding.height_needed, args_.padding_mode, args_.fill);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_crop, RandomCrop)
