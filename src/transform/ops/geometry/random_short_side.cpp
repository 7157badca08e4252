// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomShortSide final : public OperationWith<RandomShortSide, op::RandomShortSide> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_short_side";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomShortSide::min_sizes>("min_size", {.low = 1}),
                               argument<&op::RandomShortSide::max_size>("max_size", {.low = 1}),
                               argument<&op::RandomShortSide::interpolation>("interpolation")});

  std::string describe() const override {
    std::string text = "min_size=(";
    for (const int side : args_.min_sizes) text += number(side) + ", ";
    text.resize(text.size() - (args_.min_sizes.size() == 1 ? 1 : 2));
    return text + ")" + (args_.max_size ? ", max_size=" + number(*args_.max_size) : "") +
           and_interpolation(args_.interpolation);
  }
  Properties properties() const override {
    return {.is_random = true, .moves_pixels = true, .changes_size = true, .narrows_decoding = true};
  }

  Result<void> infer(Inference& image) const override {
    if (args_.min_sizes.empty()) return config_error("min_size must contain at least one number of pixels, got none");
    for (const int side : args_.min_sizes) FEEDLINE_CHECK_OK(check_size({side, side}));
    if (args_.max_size) FEEDLINE_CHECK_OK(check_side("max_size", *args_.max_size));
    return image.becomes_any_size();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const Size size = draw_short_side(args_, drawer.size(), random);
    return drawer.resize(size, drawer.chosen(args_.interpolation, random));
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_short_side, RandomShortSide)
