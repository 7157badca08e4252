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

class RandomBrightness final : public OperationWith<RandomBrightness, op::RandomBrightness>, public VolumeOperation {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_brightness";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomBrightness::factor>("factor"), argument<&op::RandomBrightness::p>("p")});

  std::string describe() const override { return "factor=" + in_brackets(args_.factor) + ", p=" + number(args_.p); }
  Properties properties() const override { return {.stage = Stage::kVolume, .is_random = true, .volume = this}; }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_between("factor", args_.factor, 0, 1e6));
    return check_probability(args_.p);
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

  void apply(base::Random random, VolumeValues values, VolumeWorkspace& /*workspace*/) const override {
    if (random.uniform() >= args_.p) return;
    const auto factor = static_cast<float>(draw_around_one(random, args_.factor));
    for (float& value : values.data) value *= factor;
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_brightness, RandomBrightness)
