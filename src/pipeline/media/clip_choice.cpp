// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/clip_choice.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "transform/operation/description.h"

namespace feedline::pipeline {
namespace {

using transform::number;

// A window may exceed the video's end by rounding errors of its times.
constexpr double kSame = 1e-6;

Result<void> check_frames(const decode::ShownFrames& shown) {
  if (shown.count() > 0) return {};
  return data_error("the video has no frames", "decode");
}

Result<void> check_times(const decode::VideoIndex& index) {
  if (index.has_times) return {};
  return data_error("the video has no time stamps, so frames cannot be chosen by time; choose them by number",
                    "decode");
}

std::uint64_t below(base::Random& random, std::uint64_t bound) {
  return std::min(static_cast<std::uint64_t>(random.uniform() * static_cast<double>(bound)), bound - 1);
}

// Returns the start of clip number `clip` of `clips`, from 0 to `most`.
double start_of(const op::Clip& clip, int number_of_clip, double most, base::Random& random) {
  if (clip.start) return *clip.start;
  if (clip.sampling == op::ClipSampling::kRandom) return random.uniform() * most;
  return (number_of_clip + 0.5) * most / clip.clips;
}

Result<void> choose_by_number(const op::Clip& clip, const decode::ShownFrames& shown, base::Random& random,
                              ChosenFrames& chosen) {
  const std::uint64_t count = shown.count(), frames = static_cast<std::uint64_t>(*clip.frames);
  const auto every = static_cast<std::uint64_t>(clip.every);
  const std::uint64_t span = (frames - 1) * every + 1;
  const std::uint64_t given = clip.start ? static_cast<std::uint64_t>(*clip.start) : 0;
  if ((span > count || given > count - span) && !clip.pad)
    return data_error("the video has " + std::to_string(count) + " frames, but the clip needs " +
                          std::to_string(given + span) + "; pass a shorter clip, or pad=True to repeat the last frame",
                      "decode");
  const std::uint64_t starts = span > count ? 1 : count - span + 1;
  for (int i = 0; i < clip.clips; ++i) {
    // the starts are 0 to starts - 1, each with the same probability
    const double drawn = start_of(clip, i, static_cast<double>(starts), random);
    const std::uint64_t start = clip.start ? given : std::min(static_cast<std::uint64_t>(drawn), starts - 1);
    for (std::uint64_t frame = 0; frame < frames; ++frame) {
      const std::uint64_t wanted = start + frame * every;
      chosen.frames.push_back(std::min(wanted, count - 1));
      chosen.are_pads.push_back(wanted >= count ? 1 : 0);
    }
  }
  return {};
}

// Part i of n has the frames from i * count / n to (i + 1) * count / n.
Result<void> choose_segments(const op::Clip& clip, const decode::ShownFrames& shown, base::Random& random,
                             ChosenFrames& chosen) {
  const std::uint64_t count = shown.count(), frames = static_cast<std::uint64_t>(*clip.frames);
  if (frames > count && !clip.pad)
    return data_error("the video has " + std::to_string(count) + " frames, fewer than the " + std::to_string(frames) +
                          " segments; pass fewer, or pad=True to repeat the last frame",
                      "decode");
  const std::uint64_t segments = std::min(frames, count);
  for (int i = 0; i < clip.clips; ++i)
    for (std::uint64_t segment = 0; segment < frames; ++segment) {
      const std::uint64_t begin = segment * count / segments, end = (segment + 1) * count / segments;
      const bool is_pad = segment >= segments;
      chosen.frames.push_back(is_pad ? count - 1 : begin + below(random, end - begin));
      chosen.are_pads.push_back(is_pad ? 1 : 0);
    }
  return {};
}

Result<void> choose_by_rate(const op::Clip& clip, const decode::VideoIndex& index, const decode::ShownFrames& shown,
                            base::Random& random, ChosenFrames& chosen) {
  FEEDLINE_CHECK_OK(check_times(index));
  const double duration = shown.duration(), seconds = *clip.seconds;
  const double given = clip.start.value_or(0);
  if (given + seconds > duration + kSame && !clip.pad)
    return data_error("the video has " + number(duration) + " seconds, but the clip needs " + number(given + seconds) +
                          "; pass a shorter clip, or pad=True to repeat the last frame",
                      "decode");
  const std::int64_t frames = frames_of(clip);
  for (int i = 0; i < clip.clips; ++i) {
    const double start = start_of(clip, i, std::max(duration - seconds, 0.0), random);
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      const double time = start + static_cast<double>(frame) / *clip.fps;
      const auto at = shown.at(time);
      chosen.frames.push_back(at.value_or(shown.count() - 1));
      chosen.are_pads.push_back(at || time < duration ? 0 : 1);
    }
  }
  return {};
}

}  // namespace

std::int64_t frames_of(const op::Clip& clip) {
  return clip.frames ? std::int64_t{*clip.frames} : std::max<std::int64_t>(std::llround(*clip.fps * *clip.seconds), 1);
}

Result<void> choose_frames(const op::Clip& clip, const decode::VideoIndex& index, const decode::ShownFrames& shown,
                           base::Random random, ChosenFrames& chosen) {
  chosen.frames.clear();
  chosen.are_pads.clear();
  FEEDLINE_CHECK_OK(check_frames(shown));
  if (clip.fps) return choose_by_rate(clip, index, shown, random, chosen);
  if (clip.sampling == op::ClipSampling::kSegments && !clip.start) return choose_segments(clip, shown, random, chosen);
  return choose_by_number(clip, shown, random, chosen);
}

Result<void> choose_frames(const op::Frames& wanted, const decode::VideoIndex& index, const decode::ShownFrames& shown,
                           ChosenFrames& chosen) {
  chosen.frames.clear();
  chosen.are_pads.clear();
  FEEDLINE_CHECK_OK(check_frames(shown));
  const auto count = static_cast<std::int64_t>(shown.count());
  for (const int frame : wanted.frames) {
    const std::int64_t positive = frame < 0 ? frame + count : frame;
    if (positive < 0 || positive >= count)
      return data_error(
          "frame " + std::to_string(frame) + " does not exist: the video has " + std::to_string(count) + " frames",
          "decode");
    chosen.frames.push_back(static_cast<std::uint64_t>(positive));
  }
  if (!wanted.times.empty()) FEEDLINE_CHECK_OK(check_times(index));
  for (const double time : wanted.times) {
    const auto at = shown.at(time);
    if (!at)
      return data_error(
          "no frame is shown at " + number(time) + " s: the video has " + number(shown.duration()) + " seconds",
          "decode");
    chosen.frames.push_back(*at);
  }
  return {};
}

Result<void> choose_frames(std::span<const double> times, double tolerance, const decode::VideoIndex& index,
                           const decode::ShownFrames& shown, ChosenFrames& chosen) {
  chosen.frames.clear();
  chosen.are_pads.clear();
  FEEDLINE_CHECK_OK(check_frames(shown));
  FEEDLINE_CHECK_OK(check_times(index));
  for (const double time : times) {
    std::uint64_t frame = shown.at(time).value_or(time < 0 ? 0 : shown.count() - 1);
    if (frame + 1 < shown.count() && shown.time(frame + 1) - time < time - shown.time(frame)) ++frame;
    if (!(std::abs(shown.time(frame) - time) < tolerance))
      return data_error("the video has no frame within " + number(tolerance) + " s of " + number(time) +
                            " s, where the metadata expects one: it has " + std::to_string(shown.count()) +
                            " frames and ends at " + number(shown.duration()) + " s",
                        "decode");
    chosen.frames.push_back(frame);
  }
  return {};
}

}  // namespace feedline::pipeline
