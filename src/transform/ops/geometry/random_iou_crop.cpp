// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "transform/augment/iou_crop.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

constexpr int kMostTrials = 10'000;

class RandomIouCrop final : public OperationWith<RandomIouCrop, op::RandomIouCrop> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_iou_crop";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomIouCrop::min_scale>("min_scale"), argument<&op::RandomIouCrop::max_scale>("max_scale"),
       argument<&op::RandomIouCrop::min_aspect_ratio>("min_aspect_ratio"),
       argument<&op::RandomIouCrop::max_aspect_ratio>("max_aspect_ratio"),
       argument<&op::RandomIouCrop::sampler_options>("sampler_options"),
       argument<&op::RandomIouCrop::trials>("trials")});

  std::string describe() const override {
    std::string options;
    for (const double option : args_.sampler_options) options += (options.empty() ? "" : ", ") + number(option);
    return "min_scale=" + number(args_.min_scale) + ", max_scale=" + number(args_.max_scale) +
           ", min_aspect_ratio=" + number(args_.min_aspect_ratio) +
           ", max_aspect_ratio=" + number(args_.max_aspect_ratio) + ", sampler_options=[" + options +
           "], trials=" + number(args_.trials);
  }
  Properties properties() const override {
    return {.is_random = true,
            .moves_pixels = true,
            .changes_size = true,
            .draws_by_size = true,
            .draws_by_boxes = true,
            .narrows_decoding = true};
  }

  Result<void> infer(Inference& image) const override {
    const Range scale{args_.min_scale, args_.max_scale};
    if (!(scale.low > 0 && scale.low <= scale.high && scale.high <= 1))
      return config_error("min_scale and max_scale must be two numbers 0 < low <= high <= 1, got " + shown(scale));
    FEEDLINE_CHECK_OK(
        check_positive("min_aspect_ratio and max_aspect_ratio", {args_.min_aspect_ratio, args_.max_aspect_ratio}));
    if (args_.trials < 1 || args_.trials > kMostTrials)
      return config_error("trials must be from 1 to " + number(kMostTrials) + ", got " + number(args_.trials));
    if (args_.sampler_options.empty()) return config_error("sampler_options must not be empty");
    for (const double option : args_.sampler_options)
      if (!(option >= 0)) return config_error("sampler_options must not be negative, got " + shown(option));
    return image.becomes_any_size();
  }
  // The crop is drawn for the canvas that has boxes; the sample's other canvases reuse the crop.
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    std::optional<Box> crop;
    if (drawer.canvas().draw_iou_crop(args_, random, crop)) drawer.iou_crops()->note(drawer.stream(), crop);
    const auto* const drawn = drawer.iou_crops() == nullptr ? nullptr : drawer.iou_crops()->find(drawer.stream());
    if (drawn == nullptr) return drawer.refuse("the crop depends on the boxes of a sample, but this sample has none");
    if (!*drawn) return {};
    drawer.canvas().crop(**drawn);
    drawer.canvas().clear_outside();
    drawer.record_crop(**drawn);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_iou_crop, RandomIouCrop)
