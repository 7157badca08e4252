// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/ops/volume/patch_arguments.h"

namespace feedline::transform {
namespace {

class RandomPatch final : public OperationWith<RandomPatch, op::RandomPatch> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_patch";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Patch::size>("size"), argument<&op::Patch::pad>("pad"),
       argument<&op::RandomPatch::foreground>("foreground"), argument<&op::RandomPatch::share>("share"),
       argument<&op::RandomPatch::values>("values")});

  std::string_view name() const override { return "random_crop"; }
  std::string describe() const override {
    std::string text = describe_patch(args_, "pad_if_needed=True");
    if (args_.foreground.empty()) return text;
    text += ", foreground=(\"" + args_.foreground + "\", " + number(args_.share);
    if (!args_.values.empty()) {
      text += ", [";
      for (const int value : args_.values) text += (text.back() == '[' ? "" : ", ") + std::to_string(value);
      text += "]";
    }
    text += ")";
    return text;
  }
  Properties properties() const override {
    return {.stage = Stage::kVolume, .is_random = true, .patch = &args_, .random_patch = &args_};
  }
  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_patch(args_));
    if (args_.foreground.empty()) return {};
    if (!(args_.share >= 0 && args_.share <= 1))
      return config_error("foreground: the share must be from 0 to 1, got " + shown(args_.share));
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_patch, RandomPatch)
