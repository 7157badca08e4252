// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Grayscale final : public OperationWith<Grayscale, op::Grayscale> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "grayscale";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::Grayscale::num_output_channels>("num_output_channels")});

  std::string describe() const override { return "num_output_channels=" + number(args_.num_output_channels); }
  // For rows on a GPU, the number of channels cannot change.
  Properties properties() const override {
    const bool keeps_channels = args_.num_output_channels == 3;
    return {.runs_on_device = keeps_channels, .colour_changes = keeps_channels ? 1u : 0u};
  }

  Result<void> infer(Inference& image) const override {
    if (args_.num_output_channels != 1 && args_.num_output_channels != 3)
      return config_error("num_output_channels must be 1 or 3, got " + number(args_.num_output_channels));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    image.state.channels = args_.num_output_channels;
    return {};
  }
  Result<void> draw(Drawer& drawer) const override {
    drawer.canvas().grayscale(args_.num_output_channels);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(grayscale, Grayscale)
