// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

// torchvision's modes "soft" and "hard" are equivalent for these boxes.
constexpr auto kClamping = std::to_array<Word<bool>>({{"soft", true}, {"hard", true}, {"None", false}});
constexpr auto kUnsound = std::to_array<Word<bool>>({{"error", false}, {"keep", true}});

class Boxes final : public OperationWith<Boxes, op::Boxes> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "boxes";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Boxes::format>("format"), argument<&op::Boxes::clamps, WordKind<kClamping>>("clamping_mode"),
       argument<&op::Boxes::takes_unsound, WordKind<kUnsound>>("unsound")});

  std::string describe() const override {
    return std::string(word_of(args_.format)) + (args_.clamps ? "" : ", clamping_mode=None") +
           (args_.takes_unsound ? ", unsound=keep" : "");
  }
  Properties properties() const override { return {.stage = Stage::kTargets, .boxes = &args_}; }
  Result<void> infer(Inference& /*image*/) const override { return {}; }
  Result<void> draw(Drawer& /*drawer*/) const override {
    return {};
  }  // target chains read the format from
     // properties()
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(boxes, Boxes)
