// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class CornerCrop final : public OperationWith<CornerCrop, op::CornerCrop> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "corner_crop";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::CornerCrop::size>("size"), argument<&op::CornerCrop::corner>("corner")});

  std::string describe() const override { return sides(args_.size) + ", corner=" + std::string(word_of(args_.corner)); }
  Properties properties() const override {
    return {.moves_pixels = true, .changes_size = true, .narrows_decoding = true, .runs_on_device = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    if (image.state.size && !fits(*image.state.size)) return config_error(too_small(*image.state.size));
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    if (!fits(drawer.size())) return drawer.refuse(too_small(drawer.size()));
    drawer.crop(plan_corner_crop(drawer.size(), args_));
    return {};
  }

 private:
  bool fits(Size image) const { return image.height >= args_.size.height && image.width >= args_.size.width; }
  std::string too_small(Size image) const {
    return "the crop of " + shown(args_.size) + " is larger than the image, which is " + shown(image) +
           " at this point";
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_UNLISTED_OPERATION(CornerCrop)
FEEDLINE_NOTHING_LISTED(corner_crop)
