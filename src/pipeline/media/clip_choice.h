// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses the frames of a video's clips. Pure functions.

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::pipeline {

// The chosen frames of all clips of a video, one clip after the other.
struct ChosenFrames {
  std::vector<std::uint64_t> frames;   // numbers in the order in which they are shown
  std::vector<std::uint8_t> are_pads;  // one per frame: 1 if it repeats the last frame, as the video is too short
};

// The number of frames of one clip.
std::int64_t frames_of(const op::Clip& clip);

// random: the stream of the sample's operation. kData: the video is too short, has no frames, or has no time stamps but
// the choice needs them.
Result<void> choose_frames(const op::Clip& clip, const decode::VideoIndex& index, const decode::ShownFrames& shown,
                           base::Random random, ChosenFrames& chosen);
Result<void> choose_frames(const op::Frames& wanted, const decode::VideoIndex& index, const decode::ShownFrames& shown,
                           ChosenFrames& chosen);

// times: seconds from the first frame. Each selects the nearest frame, which differs by less than `tolerance`.
Result<void> choose_frames(std::span<const double> times, double tolerance, const decode::VideoIndex& index,
                           const decode::ShownFrames& shown, ChosenFrames& chosen);

}  // namespace feedline::pipeline
