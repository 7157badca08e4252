// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class ToDtype final : public OperationWith<ToDtype, op::ToDtype> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "to_dtype";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::ToDtype::dtype>("dtype"), argument<&op::ToDtype::scale>("scale")});

  std::string describe() const override {
    return std::string(name_of(args_.dtype)) + (args_.scale ? ", scale=True" : "");
  }
  Properties properties() const override {
    return {.stage = Stage::kValues, .makes_values = makes_values(), .runs_on_device = true};
  }

  Result<void> infer(Inference& image) const override {
    if (!is_pixel_dtype(args_.dtype))
      return config_error(std::string(name_of(args_.dtype)) +
                          " is not an element type of images; use uint8, float16 or float32");
    if (!makes_values()) FEEDLINE_CHECK_OK(image.needs_bytes());
    if (!makes_values() && image.state.dtype != DType::kUint8)
      return config_error("the image is " + std::string(name_of(image.state.dtype)) +
                          " at this point and cannot become uint8");
    image.state.dtype = args_.dtype;
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    if (makes_values()) drawer.begin_output();
    return {};
  }
  void convert(ValueSteps& steps) const override { steps.convert(args_.dtype, args_.scale); }

 private:
  bool makes_values() const { return args_.dtype != DType::kUint8; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(to_dtype, ToDtype)
