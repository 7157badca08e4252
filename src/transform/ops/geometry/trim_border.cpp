// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class TrimBorder final : public OperationWith<TrimBorder, op::TrimBorder> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "trim_border";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::TrimBorder::border>("border_size", {.low = 0})});

  std::string describe() const override { return number(args_.border); }
  Properties properties() const override {
    return {.moves_pixels = true, .changes_size = true, .narrows_decoding = true, .runs_on_device = true};
  }

  Result<void> infer(Inference& image) const override {
    if (args_.border < 0) return config_error("border_size must not be negative, got " + number(args_.border));
    FEEDLINE_CHECK_OK(image.needs_pixels());
    if (!image.state.size) return {};
    const auto box = remaining_part(*image.state.size);
    return box ? image.becomes({box->height, box->width}) : config_error(too_small(*image.state.size));
  }
  Result<void> draw(Drawer& drawer) const override {
    const auto box = remaining_part(drawer.size());
    if (!box) return drawer.refuse(too_small(drawer.size()));
    drawer.crop(*box);
    return {};
  }

 private:
  // Returns nullopt if nothing remains.
  std::optional<Box> remaining_part(Size image) const {
    const std::int64_t both = 2 * std::int64_t{args_.border};
    if (image.height <= both || image.width <= both) return std::nullopt;
    const int taken = static_cast<int>(both);
    return Box{args_.border, args_.border, image.width - taken, image.height - taken};
  }
  std::string too_small(Size image) const {
    return "a border of " + number(args_.border) + " leaves nothing of the image, which is " + shown(image) +
           " at this point";
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(trim_border, TrimBorder)
