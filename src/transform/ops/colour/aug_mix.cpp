// SPDX-License-Identifier: Apache-2.0
#include <cmath>
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

constexpr int kMostSeverity = 10;  // number of magnitude bins

class AugMix final : public OperationWith<AugMix, op::AugMix> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "aug_mix";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::AugMix::severity>("severity"), argument<&op::AugMix::mixture_width>("mixture_width"),
       argument<&op::AugMix::chain_depth>("chain_depth"), argument<&op::AugMix::alpha>("alpha"),
       argument<&op::AugMix::all_ops>("all_ops"), argument<&op::AugMix::interpolation>("interpolation"),
       argument<&op::AugMix::fill>("fill")});

  std::string describe() const override {
    return "severity=" + number(args_.severity) + ", mixture_width=" + number(args_.mixture_width) +
           ", chain_depth=" + number(args_.chain_depth) + ", alpha=" + number(args_.alpha) +
           (args_.all_ops ? "" : ", all_ops=False") + and_interpolation(args_.interpolation) + and_fill(args_.fill);
  }
  Properties properties() const override { return {.is_random = true, .is_automatic = true}; }

  Result<void> infer(Inference& image) const override {
    constexpr int kMostDepth = static_cast<int>(Augmentations::kMost);
    if (args_.severity < 1 || args_.severity > kMostSeverity)
      return config_error("severity must be from 1 to " + number(kMostSeverity) + ", got " + number(args_.severity));
    if (args_.mixture_width < 1 || args_.mixture_width > MixDrawing::kMost)
      return config_error("mixture_width must be from 1 to " + number(MixDrawing::kMost) + ", got " +
                          number(args_.mixture_width));
    if (args_.chain_depth > kMostDepth)
      return config_error("chain_depth must be at most " + number(kMostDepth) + ", got " + number(args_.chain_depth));
    if (!(args_.alpha > 0) || !std::isfinite(args_.alpha))
      return config_error("alpha must be above 0, got " + shown(args_.alpha));
    return image.check_interpolation(args_.interpolation);
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const MixDrawing drawn = draw_mix(args_.mixture_width, args_.alpha, random);
    drawer.record_mix(drawn);
    drawer.canvas().mix_begin(drawn.image);
    for (int chain = 0; chain < args_.mixture_width; ++chain) {
      drawer.record_number("chain", chain);
      Augmentations changes;
      draw_aug_mix_chain(args_.severity, draw_depth(args_.chain_depth, random), args_.all_ops, drawer.size(), random,
                         changes);
      drawer.augment_each(changes, args_.interpolation, args_.fill, random);
      drawer.canvas().mix_add(drawn.chains[static_cast<std::size_t>(chain)]);
    }
    drawer.canvas().mix_end(std::nullopt);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(aug_mix, AugMix)
