// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class RandomResize final : public OperationWith<RandomResize, op::RandomResize> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_resize";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomResize::min_size>("min_size", {.low = 1}),
                               argument<&op::RandomResize::max_size>("max_size", {.low = 1}),
                               argument<&op::RandomResize::interpolation>("interpolation")});

  std::string describe() const override {
    return "min_size=" + number(args_.min_size) + ", max_size=" + number(args_.max_size) +
           and_interpolation(args_.interpolation);
  }
  Properties properties() const override {
    return {.is_random = true, .moves_pixels = true, .changes_size = true, .narrows_decoding = true};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_size({args_.min_size, args_.min_size}));
    if (args_.max_size <= args_.min_size || args_.max_size > kMostPixelsPerSide)
      return config_error("max_size must be greater than min_size " + number(args_.min_size) + " and at most " +
                          number(kMostPixelsPerSide) + ", got " + number(args_.max_size));
    return image.becomes_any_size();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const int edge = draw_edge(args_, random);
    const Size size = resized_size(drawer.size(), op::Resize{{edge, 0}, {}});
    return drawer.resize(size, drawer.chosen(args_.interpolation, random));
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_resize, RandomResize)
