// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include "transform/augment/augmentation_policy.h"
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class TimmAugment final : public OperationWith<TimmAugment, op::TimmAugment> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "timm_augment";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::TimmAugment::config>("config"), argument<&op::TimmAugment::fill>("img_mean"),
       argument<&op::TimmAugment::interpolation>("interpolation"),
       argument<&op::TimmAugment::translate>("translate_pct")});
  static op::TimmAugment initial() { return {.fill = {124, 116, 104}}; }  // timm's img_mean for ImageNet
  static Result<Operation> made(op::TimmAugment arguments) { return timm_augment(std::move(arguments)); }

  std::string describe() const override {
    return "'" + args_.config + "'" + and_fill(args_.fill) +
           and_interpolation(args_.interpolation, Interpolation::kRandom) +
           ", translate_pct=" + number(args_.translate);
  }
  Properties properties() const override { return {.is_random = true, .is_automatic = true}; }

  Result<void> infer(Inference& image) const override {
    if (args_.policy == nullptr) return config_error("create it with timm_augment(), which parses its policy");
    if (!(args_.translate >= 0 && args_.translate <= 1))
      return config_error("translate_pct must be from 0 to 1, got " + shown(args_.translate));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const std::optional<TimmPolicy::Mix>& mix = args_.policy->mix();
    if (mix) {
      draw_mixed(*mix, drawer, random);
      return {};
    }
    Augmentations drawn;
    args_.policy->draw(drawer.size(), random, drawn);
    augment(drawn, drawer, random);
    return {};
  }

 private:
  void draw_mixed(const TimmPolicy::Mix& mix, Drawer& drawer, base::Random& random) const {
    const MixDrawing drawn = draw_timm_mix(mix.width, mix.alpha, mix.in_turn, random);
    drawer.record_mix(drawn);
    drawer.canvas().mix_begin(0, mix.in_turn);
    for (int chain = 0; chain < mix.width; ++chain) {
      drawer.record_number("chain", chain);
      Augmentations changes;
      args_.policy->draw_chain(draw_depth(mix.depth, random), drawer.size(), random, changes);
      augment(changes, drawer, random);
      drawer.canvas().mix_add(drawn.chains[static_cast<std::size_t>(chain)]);
    }
    drawer.canvas().mix_end(drawn.blended);
  }
  void augment(const Augmentations& changes, Drawer& drawer, base::Random& random) const {
    for (const DrawnAugmentation& one : changes) {
      const bool moves = moves_pixels(one.augmentation);
      const Interpolation interpolation = moves ? drawer.chosen(args_.interpolation, random) : Interpolation::kNearest;
      drawer.canvas().change(timm_operation(one, drawer.size(), interpolation, args_.fill), moves);
      drawer.record(Decision::Kind::kAugmentation).augmentation = one;
    }
  }
};

}  // namespace
}  // namespace feedline::transform

namespace feedline {

Result<Operation> timm_augment(op::TimmAugment augment) {
  FEEDLINE_TRY(transform::TimmPolicy policy, transform::TimmPolicy::parse(augment.config, augment.translate));
  augment.policy = std::make_shared<const transform::TimmPolicy>(std::move(policy));
  return augment;
}

}  // namespace feedline

FEEDLINE_OPERATION(timm_augment, TimmAugment)
