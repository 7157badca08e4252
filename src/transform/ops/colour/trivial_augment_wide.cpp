// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/augmentation_policy.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class TrivialAugmentWide final : public OperationWith<TrivialAugmentWide, op::TrivialAugmentWide> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "trivial_augment_wide";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::TrivialAugmentWide::num_magnitude_bins>("num_magnitude_bins"),
       argument<&op::TrivialAugmentWide::interpolation>("interpolation"),
       argument<&op::TrivialAugmentWide::fill>("fill"), argument<&op::TrivialAugmentWide::version>("version")});

  std::string describe() const override {
    return "num_magnitude_bins=" + number(args_.num_magnitude_bins) +
           and_interpolation(args_.interpolation, Interpolation::kNearest) + and_fill(args_.fill) +
           and_version(args_.version);
  }
  Properties properties() const override { return {.is_random = true, .is_automatic = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_bins(args_.num_magnitude_bins));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    Augmentations drawn;
    draw_trivial_augment_wide(args_.num_magnitude_bins, drawer.size(), random, drawn, args_.version);
    drawer.augment_each(drawn, args_.interpolation, args_.fill, random);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(trivial_augment_wide, TrivialAugmentWide)
