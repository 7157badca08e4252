// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Skipped final : public OperationWith<Skipped, op::Skipped> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "skipped";
  static constexpr std::array<Argument, 0> kArguments{};

  std::string describe() const override { return ""; }
  Properties properties() const override { return {.stage = Stage::kNone, .runs_on_device = true}; }
  Result<void> infer(Inference& /*image*/) const override { return {}; }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_UNLISTED_OPERATION(Skipped)
FEEDLINE_NOTHING_LISTED(skipped)
