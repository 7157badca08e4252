// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "feedline/error.h"

namespace feedline::decode {

// from, to: rates, or their ratio. Returns the length of `frames` frames after resampling, rounded to the nearest.
std::uint64_t resampled_frames(std::uint64_t frames, std::uint64_t from, std::uint64_t to);

// The frames of a file that are needed to make a part of the resampled file.
struct ResampledPart {
  std::uint64_t begin = 0, end = 0;  // frames of the file
  std::uint64_t skipped = 0;         // resampled frames before the part
};
// begin, frames: the part, in resampled frames. The margin around it is longer than libsoxr's filters.
ResampledPart part_needed(std::uint64_t begin, std::uint64_t frames, std::uint64_t file_frames, std::uint64_t from,
                          std::uint64_t to);

// Resamples with libsoxr's VHQ recipe. The result of a part equals the slice of the whole file resampled, to rounding
// (1e-6 of full scale). Has no state and is thread-safe.
// kConfig: libsoxr is not installed. Requires: in has the frames of part_needed() with interleaved channels.
Result<void> resample(std::span<const float> in, std::uint32_t channels, std::uint64_t from, std::uint64_t to,
                      std::uint64_t skipped, std::span<float> out, std::vector<float>& room);

}  // namespace feedline::decode
