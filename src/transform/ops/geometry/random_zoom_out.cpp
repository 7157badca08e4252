// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

constexpr double kMostZoom = 100;

class RandomZoomOut final : public OperationWith<RandomZoomOut, op::RandomZoomOut> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_zoom_out";
  static constexpr auto kArguments = std::to_array<Argument>({argument<&op::RandomZoomOut::fill>("fill"),
                                                              argument<&op::RandomZoomOut::side_range>("side_range"),
                                                              argument<&op::RandomZoomOut::p>("p")});

  std::string describe() const override {
    return "side_range=" + in_brackets(args_.side_range) + ", p=" + number(args_.p) + and_fill(args_.fill);
  }
  Properties properties() const override {
    return {.is_random = true, .moves_pixels = true, .changes_size = true, .draws_by_size = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    FEEDLINE_CHECK_OK(check_between("side_range", args_.side_range, 1, kMostZoom));
    return image.becomes_any_size();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const std::optional<Padding> padding = draw_zoom_out(args_, drawer.size(), random);
    if (!padding) return {};
    FEEDLINE_CHECK_OK(drawer.check_outcome(padded(drawer.size(), *padding)));
    return drawer.pad(*padding, PaddingMode::kConstant, args_.fill);
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_zoom_out, RandomZoomOut)
