// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a video's index from the boxes of an MP4 or QuickTime file (ISO/IEC 14496-12), without FFmpeg and without
// reading the media data. The functions have no state and are thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "decode/video/video_file.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"

namespace feedline::decode {

// Returns EXIF's number of the turn that a display matrix describes: {a, b, u, c, d, v, x, y, w} in 16.16 maps a stored
// point (p, q) to (ap + cq + x, bp + dq + y). 1 if it is not a turn by right angles.
int orientation_of_matrix(std::span<const std::int32_t, 9> matrix);

// Returns whether the file begins with a box of the format.
bool is_mp4(std::span<const std::byte> head);

// stream: the track, as a number among all tracks; nullopt for the one that FFmpeg would choose. Returns nullopt if the
// track has a codec or a structure that only FFmpeg reads. kData: the file is damaged, encrypted or incomplete, or has
// no such stream.
Result<std::optional<VideoIndex>> read_mp4_index(const VideoFile& source, std::optional<int> stream);

// Reads the packets of an index whose container claims that all are key frames, and corrects it.
Result<void> find_keys(const VideoFile& source, VideoIndex& index);

}  // namespace feedline::decode
