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

class RandomContrast final : public OperationWith<RandomContrast, op::RandomContrast>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_contrast";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomContrast::factor>("factor"), argument<&op::RandomContrast::p>("p"),
                               argument<&op::RandomContrast::preserve_range>("preserve_range")});

  std::string describe() const override {
    return "factor=" + in_brackets(args_.factor) + ", p=" + number(args_.p) +
           (args_.preserve_range ? "" : ", preserve_range=False");
  }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_between("factor", args_.factor, 0, 1e6));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random random, VolumeValues values, VolumeWorkspace& /*workspace*/) const override {
    if (random.uniform() >= args_.p) return;
    const auto factor = static_cast<float>(draw_around_one(random, args_.factor));
    const auto mean = static_cast<float>(mean_and_std(values.data).first);
    const auto [least, most] = least_and_most(values.data);
    rescale(values.data, mean, factor, mean);
    if (args_.preserve_range) clamp(values.data, least, most);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_contrast, RandomContrast)
