// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class GridPatch final : public OperationWith<GridPatch, op::GridPatch> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "grid_patch";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Patch::size>("size"), argument<&op::Patch::pad>("pad")});

  std::string describe() const override {
    std::string text = "(";
    for (const int extent : args_.size) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    text += args_.pad ? "), pad=True" : ")";
    return text;
  }
  Properties properties() const override { return {.stage = Stage::kVolume, .patch = &args_, .is_grid_patch = true}; }
  Result<void> infer(Inference& /*image*/) const override {
    if (args_.size.empty()) return config_error("size must have one number of voxels per cropped axis");
    for (const int extent : args_.size) FEEDLINE_CHECK_OK(check_side("size", extent));
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(grid_patch, GridPatch)
