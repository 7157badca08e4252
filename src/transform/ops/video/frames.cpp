// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Frames final : public OperationWith<Frames, op::Frames> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "frames";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Frames::frames>("frames"), argument<&op::Frames::times>("times"),
       argument<&op::Frames::timestamps>("timestamps"), argument<&op::Frames::stream>("stream", {.low = 0})});

  std::string describe() const override {
    std::string text = args_.times.empty() ? "[" : "times=[";
    const std::size_t start = text.size();
    for (const int frame : args_.frames) text += (text.size() == start ? "" : ", ") + std::to_string(frame);
    for (const double time : args_.times) text += (text.size() == start ? "" : ", ") + number(time);
    text += "]";
    if (args_.timestamps) text += ", timestamps=True";
    return args_.stream ? text + ", stream=" + std::to_string(*args_.stream) : text;
  }
  Properties properties() const override { return {.stage = Stage::kNone, .frames = &args_}; }

  Result<void> infer(Inference& /*image*/) const override {
    if (args_.frames.empty() == args_.times.empty())
      return config_error("pass numbers of frames or times=, at least one of them");
    for (const double time : args_.times)
      if (!std::isfinite(time) || time < 0)
        return config_error("times are seconds since the first frame, 0 or more, got " + shown(time));
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(frames, Frames)
