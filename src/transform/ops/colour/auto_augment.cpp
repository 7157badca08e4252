// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/augmentation_policy.h"
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class AutoAugment final : public OperationWith<AutoAugment, op::AutoAugment> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "auto_augment";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::AutoAugment::policy>("policy"), argument<&op::AutoAugment::interpolation>("interpolation"),
       argument<&op::AutoAugment::fill>("fill"), argument<&op::AutoAugment::version>("version")});

  std::string describe() const override {
    return "policy=" + std::string(word_of(args_.policy)) +
           and_interpolation(args_.interpolation, Interpolation::kNearest) + and_fill(args_.fill) +
           and_version(args_.version);
  }
  Properties properties() const override { return {.is_random = true, .is_automatic = true}; }
  Result<void> infer(Inference& image) const override { return image.check_interpolation(args_.interpolation); }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    Augmentations drawn;
    draw_auto_augment(args_.policy, drawer.size(), random, drawn, args_.version);
    drawer.augment_each(drawn, args_.interpolation, args_.fill, random);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(auto_augment, AutoAugment)
