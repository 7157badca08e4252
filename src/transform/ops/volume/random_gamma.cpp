// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/volume/volume_kernels.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {
namespace {

class RandomGamma final : public OperationWith<RandomGamma, op::RandomGamma>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_gamma";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomGamma::gamma>("gamma"), argument<&op::RandomGamma::p>("p"),
       argument<&op::RandomGamma::invert>("invert"), argument<&op::RandomGamma::retain_stats>("retain_stats")});

  std::string describe() const override {
    return "gamma=" + in_brackets(args_.gamma) + ", p=" + number(args_.p) + (args_.invert ? ", invert=True" : "") +
           (args_.retain_stats ? ", retain_stats=True" : "");
  }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_positive("gamma", args_.gamma));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random random, VolumeValues values, VolumeWorkspace& /*workspace*/) const override {
    if (random.uniform() >= args_.p) return;
    const auto gamma = static_cast<float>(draw_around_one(random, args_.gamma));
    const auto [mean, deviation] = args_.retain_stats ? mean_and_std(values.data) : std::pair(0.0, 0.0);
    const auto [least, most] = least_and_most(values.data);
    // of -x, the least value is -most
    const float low = args_.invert ? -most : least, range = most - least, sign = args_.invert ? -1.0F : 1.0F;
    if (!(range > 0)) return;
    raise_to_power(values.data, sign, low, range, gamma);
    if (!args_.retain_stats) return;
    const auto [new_mean, new_deviation] = mean_and_std(values.data);
    rescale(values.data, static_cast<float>(new_mean), static_cast<float>(deviation / std::max(new_deviation, 1e-7)),
            static_cast<float>(mean));
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_gamma, RandomGamma)
