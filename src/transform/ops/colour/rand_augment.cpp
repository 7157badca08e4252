// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/augmentation_policy.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandAugment final : public OperationWith<RandAugment, op::RandAugment> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "rand_augment";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandAugment::num_ops>("num_ops"), argument<&op::RandAugment::magnitude>("magnitude"),
       argument<&op::RandAugment::num_magnitude_bins>("num_magnitude_bins"),
       argument<&op::RandAugment::interpolation>("interpolation"), argument<&op::RandAugment::fill>("fill"),
       argument<&op::RandAugment::version>("version")});

  std::string describe() const override {
    return "num_ops=" + number(args_.num_ops) + ", magnitude=" + number(args_.magnitude) +
           ", num_magnitude_bins=" + number(args_.num_magnitude_bins) +
           and_interpolation(args_.interpolation, Interpolation::kNearest) + and_fill(args_.fill) +
           and_version(args_.version);
  }
  Properties properties() const override { return {.is_random = true, .is_automatic = true}; }

  Result<void> infer(Inference& image) const override {
    constexpr int kMost = static_cast<int>(Augmentations::kMost);
    FEEDLINE_CHECK_OK(check_bins(args_.num_magnitude_bins));
    if (args_.num_ops < 0 || args_.num_ops > kMost)
      return config_error("num_ops must be from 0 to " + number(kMost) + ", got " + number(args_.num_ops));
    if (args_.magnitude < 0 || args_.magnitude >= args_.num_magnitude_bins)
      return config_error("magnitude must be from 0 to num_magnitude_bins - 1, " +
                          number(args_.num_magnitude_bins - 1) + ", got " + number(args_.magnitude));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    Augmentations drawn;
    draw_rand_augment(args_.num_ops, args_.magnitude, args_.num_magnitude_bins, drawer.size(), random, drawn,
                      args_.version);
    drawer.augment_each(drawn, args_.interpolation, args_.fill, random);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(rand_augment, RandAugment)
