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

class RandomGaussianBlur final : public OperationWith<RandomGaussianBlur, op::RandomGaussianBlur>,
                                 public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_gaussian_blur";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomGaussianBlur::sigma>("sigma"), argument<&op::RandomGaussianBlur::p>("p")});

  std::string describe() const override { return "sigma=" + in_brackets(args_.sigma) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_between("sigma", args_.sigma, 0, 100));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random random, VolumeValues values, VolumeWorkspace& workspace) const override {
    if (random.uniform() >= args_.p) return;
    std::array<double, 3> sigma;
    for (double& along : sigma) along = random.uniform(args_.sigma.low, args_.sigma.high);
    blur(values, sigma, workspace);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_gaussian_blur, RandomGaussianBlur)
