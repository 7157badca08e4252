// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Resize final : public OperationWith<Resize, op::Resize> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "resize";
  static constexpr auto kArguments = std::to_array<Argument>({argument<&op::Resize::size, EdgeSize>("size"),
                                                              argument<&op::Resize::max_size>("max_size", {.low = 1}),
                                                              argument<&op::Resize::interpolation>("interpolation")});

  std::string describe() const override {
    std::string text = args_.size.height == 0  ? "None"
                       : args_.size.width == 0 ? number(args_.size.height)
                                               : "(" + sides(args_.size) + ")";
    if (args_.max_size) text += ", max_size=" + number(*args_.max_size);
    return text + and_interpolation(args_.interpolation);
  }
  Properties properties() const override {
    return {.is_random = args_.interpolation == Interpolation::kRandom,
            .moves_pixels = true,
            .changes_size = true,
            .narrows_decoding = true,
            .depends_on_pillow = true,
            .runs_on_device = true,
            .resizes = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_sizes());
    FEEDLINE_CHECK_OK(image.needs_pixels());
    if (args_.size.width != 0) return image.becomes(args_.size);
    return image.state.size ? image.becomes(resized_size(*image.state.size, args_)) : Result<void>{};
  }
  Result<void> draw(Drawer& drawer) const override {
    return drawer.resize(resized_size(drawer.size(), args_), drawer.chosen(args_.interpolation));
  }

 private:
  Result<void> check_sizes() const {
    const auto [height, width] = args_.size;
    if (height == 0 && width == 0)
      return args_.max_size ? check_side("max_size", *args_.max_size) : config_error("size or max_size is needed");
    FEEDLINE_CHECK_OK(check_size(width == 0 ? Size{height, height} : args_.size));
    if (args_.max_size && width != 0)
      return config_error("max_size needs an int size (of the smaller edge), got (" + std::to_string(height) + ", " +
                          std::to_string(width) + ")");
    if (args_.max_size && *args_.max_size <= height)
      return config_error("max_size must be greater than size " + std::to_string(height) + ", got " +
                          std::to_string(*args_.max_size));
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(resize, Resize)
