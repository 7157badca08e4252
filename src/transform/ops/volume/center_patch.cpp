// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"
#include "transform/ops/volume/patch_arguments.h"

namespace feedline::transform {
namespace {

class CenterPatch final : public OperationWith<CenterPatch, op::CenterPatch> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "center_patch";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Patch::size>("size"), argument<&op::Patch::pad>("pad")});

  std::string_view name() const override { return "center_crop"; }
  std::string describe() const override { return describe_patch(args_, ""); }
  Properties properties() const override { return {.stage = Stage::kVolume, .patch = &args_}; }
  Result<void> infer(Inference& /*image*/) const override { return check_patch(args_); }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(center_patch, CenterPatch)
