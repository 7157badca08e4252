// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Window final : public OperationWith<Window, op::Window> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "window";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Window::level>("level"), argument<&op::Window::width>("width")});

  std::string describe() const override { return "level=" + number(args_.level) + ", width=" + number(args_.width); }
  Properties properties() const override {
    return {.stage = Stage::kValues, .makes_values = true, .runs_on_device = true};
  }

  Result<void> infer(Inference& image) const override {
    if (!std::isfinite(args_.level)) return config_error("level must be finite, got " + shown(args_.level));
    if (!std::isfinite(args_.width) || args_.width <= 0)
      return config_error("width must be above 0, got " + shown(args_.width));
    if (image.state.dtype == DType::kFloat16) return config_error("works on float32, but the image is float16");
    image.state.dtype = DType::kFloat32;
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    drawer.begin_output();
    return {};
  }
  void convert(ValueSteps& steps) const override { steps.window(args_); }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(window, Window)
