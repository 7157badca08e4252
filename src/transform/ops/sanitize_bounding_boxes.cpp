// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class SanitizeBoundingBoxes final : public OperationWith<SanitizeBoundingBoxes, op::SanitizeBoundingBoxes> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "sanitize_bounding_boxes";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::SanitizeBoundingBoxes::min_size>("min_size"),
                               argument<&op::SanitizeBoundingBoxes::min_area>("min_area"),
                               argument<&op::SanitizeBoundingBoxes::labels>("labels")});

  std::string describe() const override {
    const std::string text = "min_size=" + number(args_.min_size) + ", min_area=" + number(args_.min_area);
    return args_.labels.empty() ? text : text + ", labels=" + listed(args_.labels);
  }
  Properties properties() const override { return {.stage = Stage::kTargets, .sanitize = &args_}; }

  Result<void> infer(Inference& /*image*/) const override {
    FEEDLINE_CHECK_OK(check_at_least_one("min_size", args_.min_size));
    return check_at_least_one("min_area", args_.min_area);
  }
  Result<void> draw(Drawer& drawer) const override {
    drawer.canvas().sanitize(args_);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(sanitize_bounding_boxes, SanitizeBoundingBoxes)
