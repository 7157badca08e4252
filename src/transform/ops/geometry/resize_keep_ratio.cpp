// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class ResizeKeepRatio final : public OperationWith<ResizeKeepRatio, op::ResizeKeepRatio> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "resize_keep_ratio";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::ResizeKeepRatio::size>("size"), argument<&op::ResizeKeepRatio::longest>("longest"),
       argument<&op::ResizeKeepRatio::interpolation>("interpolation"),
       argument<&op::ResizeKeepRatio::scale_p>("random_scale_prob"),
       argument<&op::ResizeKeepRatio::scale_range>("random_scale_range"),
       argument<&op::ResizeKeepRatio::scales_area>("random_scale_area"),
       argument<&op::ResizeKeepRatio::aspect_p>("random_aspect_prob"),
       argument<&op::ResizeKeepRatio::aspect_range>("random_aspect_range")});

  std::string describe() const override {
    std::string text = sides(args_.size) + (args_.longest != 0 ? ", longest=" + number(args_.longest) : "");
    if (args_.scale_p > 0)
      text += ", random_scale_prob=" + number(args_.scale_p) +
              ", random_scale_range=" + in_brackets(args_.scale_range) +
              (args_.scales_area ? ", random_scale_area=True" : "");
    if (args_.aspect_p > 0)
      text +=
          ", random_aspect_prob=" + number(args_.aspect_p) + ", random_aspect_range=" + in_brackets(args_.aspect_range);
    return text + and_interpolation(args_.interpolation);
  }
  Properties properties() const override {
    return {.is_random = draws_size() || args_.interpolation == Interpolation::kRandom,
            .moves_pixels = true,
            .changes_size = true,
            .narrows_decoding = true,
            .depends_on_pillow = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size(args_.size));
    if (!(args_.longest >= 0 && args_.longest <= 1))
      return config_error("longest must be from 0 to 1, got " + shown(args_.longest));
    FEEDLINE_CHECK_OK(check_probability("random_scale_prob", args_.scale_p));
    FEEDLINE_CHECK_OK(check_positive("random_scale_range", args_.scale_range));
    FEEDLINE_CHECK_OK(check_probability("random_aspect_prob", args_.aspect_p));
    FEEDLINE_CHECK_OK(check_positive("random_aspect_range", args_.aspect_range));
    if (draws_size() || !image.state.size) return image.becomes_any_size();
    FEEDLINE_CHECK_OK(image.needs_pixels());
    return image.becomes(keep_ratio_size(args_, *image.state.size, {}));
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const RatioDrawing drawn = draw_ratio(args_, random);
    if (args_.scale_p > 0) drawer.record_number("scale", drawn.scale);
    if (args_.aspect_p > 0) drawer.record_number("aspect", drawn.aspect);
    return drawer.resize(keep_ratio_size(args_, drawer.size(), drawn), drawer.chosen(args_.interpolation, random));
  }

 private:
  bool draws_size() const { return args_.scale_p > 0 || args_.aspect_p > 0; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(resize_keep_ratio, ResizeKeepRatio)
