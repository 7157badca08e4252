// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomResizedCrop final : public OperationWith<RandomResizedCrop, op::RandomResizedCrop> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_resized_crop";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomResizedCrop::size>("size"), argument<&op::RandomResizedCrop::scale>("scale"),
       argument<&op::RandomResizedCrop::ratio>("ratio"),
       argument<&op::RandomResizedCrop::interpolation>("interpolation")});

  std::string describe() const override {
    return sides(args_.size) + ", scale=" + in_brackets(args_.scale) + ", ratio=" + in_brackets(args_.ratio) +
           and_interpolation(args_.interpolation);
  }
  Properties properties() const override {
    return {.is_random = true,
            .moves_pixels = true,
            .changes_size = true,
            .draws_by_size = true,
            .narrows_decoding = true,
            .runs_on_device = true,
            .resizes = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    FEEDLINE_CHECK_OK(check_positive("scale", args_.scale));
    FEEDLINE_CHECK_OK(check_positive("ratio", args_.ratio));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    return image.becomes(args_.size);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const Box box = draw_resized_crop(drawer.size(), args_.scale, args_.ratio, random);
    drawer.canvas().crop(box);
    drawer.canvas().resize(args_.size, drawer.chosen(args_.interpolation, random));
    drawer.record_crop(box);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_resized_crop, RandomResizedCrop)
