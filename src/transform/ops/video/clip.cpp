// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

// Larger numbers are assumed to be mistakes.
constexpr int kMostFrames = 1 << 20, kMostClips = 1 << 10;
constexpr double kMostRate = 1e6, kMostSeconds = 1e6;

class Clip final : public OperationWith<Clip, op::Clip> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "clip";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Clip::frames>("frames", {.low = 1, .high = kMostFrames}),
       argument<&op::Clip::every>("every", {.low = 1, .high = kMostFrames}), argument<&op::Clip::fps>("fps"),
       argument<&op::Clip::seconds>("seconds"), argument<&op::Clip::sampling>("sampling"),
       argument<&op::Clip::clips>("clips", {.low = 1, .high = kMostClips}), argument<&op::Clip::start>("start"),
       argument<&op::Clip::timestamps>("timestamps"), argument<&op::Clip::pad>("pad"),
       argument<&op::Clip::audio>("audio"), argument<&op::Clip::stream>("stream", {.low = 0})});

  std::string describe() const override {
    std::string text = args_.frames ? "frames=" + std::to_string(*args_.frames) : "";
    if (args_.every != 1) text += ", every=" + std::to_string(args_.every);
    if (args_.fps) text += "fps=" + number(*args_.fps);
    if (args_.seconds) text += ", seconds=" + number(*args_.seconds);
    if (args_.start)
      text += ", start=" + number(*args_.start);
    else
      text += ", sampling=\"" + std::string(word_of(args_.sampling)) + "\"";
    if (args_.clips != 1) text += ", clips=" + std::to_string(args_.clips);
    if (args_.timestamps) text += ", timestamps=True";
    if (args_.pad) text += ", pad=True";
    if (args_.audio) text += ", audio=True";
    if (args_.stream) text += ", stream=" + std::to_string(*args_.stream);
    return text;
  }
  Properties properties() const override {
    return {.stage = Stage::kNone,
            .is_random = !args_.start && args_.sampling != op::ClipSampling::kUniform,
            .clip = &args_};
  }

  Result<void> infer(Inference& /*image*/) const override {
    if (args_.frames.has_value() == args_.fps.has_value())
      return config_error("pass frames=, the number of frames, or fps= and seconds=");
    if (args_.fps.has_value() != args_.seconds.has_value())
      return config_error("fps= and seconds= require each other; pass both");
    if (args_.fps) FEEDLINE_CHECK_OK(check_by_rate());
    const bool are_segments = args_.sampling == op::ClipSampling::kSegments;
    if (are_segments && args_.every != 1)
      return config_error("sampling=\"segments\" selects one frame in each part of the video; omit every=");
    if (!args_.start) return {};
    if (args_.clips != 1 || are_segments)
      return config_error("start= sets the start of a single clip; omit " +
                          std::string(are_segments ? "sampling=\"segments\"" : "clips="));
    if (!std::isfinite(*args_.start) || *args_.start < 0)
      return config_error("start must be 0 or more, got " + shown(*args_.start));
    if (args_.frames && *args_.start != std::floor(*args_.start))
      return config_error("start is the number of a frame if frames= is given, got " + shown(*args_.start));
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }

 private:
  Result<void> check_by_rate() const {
    if (!(*args_.fps > 0 && *args_.fps <= kMostRate))
      return config_error("fps must be more than 0, up to " + shown(kMostRate) + ", got " + shown(*args_.fps));
    if (!(*args_.seconds > 0 && *args_.seconds <= kMostSeconds))
      return config_error("seconds must be more than 0, up to " + shown(kMostSeconds) + ", got " +
                          shown(*args_.seconds));
    const double frames = *args_.fps * *args_.seconds;
    if (frames < 0.5 || frames > kMostFrames)
      return config_error("fps times seconds must be from 1 to " + std::to_string(kMostFrames) + " frames, got " +
                          shown(frames));
    if (args_.every != 1) return config_error("every= requires frames=; fps= already sets the distance of frames");
    if (args_.sampling == op::ClipSampling::kSegments)
      return config_error("sampling=\"segments\" requires frames=, not fps=");
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(clip, Clip)
