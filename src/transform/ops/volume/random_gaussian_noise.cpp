// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/volume/volume_kernels.h"
#include "transform/volume/volume_operation.h"

namespace feedline::transform {
namespace {

class RandomGaussianNoise final : public OperationWith<RandomGaussianNoise, op::RandomGaussianNoise>,
                                  public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_gaussian_noise";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomGaussianNoise::std>("std"), argument<&op::RandomGaussianNoise::p>("p")});

  std::string describe() const override { return "std=" + in_brackets(args_.std) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_between("std", args_.std, 0, 1e12));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random random, VolumeValues values, VolumeWorkspace& /*workspace*/) const override {
    if (random.uniform() >= args_.p) return;
    const double deviation = random.uniform(args_.std.low, args_.std.high);
    add_noise(values.data, deviation, random);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_gaussian_noise, RandomGaussianNoise)
