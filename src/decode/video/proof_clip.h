// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/video/ffmpeg_library.h"
#include "feedline/error.h"

namespace feedline::decode {

// Reads and decodes a built-in clip with the library, and compares sizes, times and colours with the known ones. If
// FfmpegLayout does not fit the library, at least one of them differs, or FFmpeg refuses the clip. Thread-safe.
Result<void> prove(const FfmpegLibrary& library);

}  // namespace feedline::decode
