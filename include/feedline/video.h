// SPDX-License-Identifier: Apache-2.0
#pragma once

// The videos that Feedline reads, with FFmpeg's libraries.

#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline {

// The extensions of files that are recognised as videos, in lower case and without a dot.
std::span<const std::string_view> video_extensions();

// Returns the versions of FFmpeg's libraries: "libavformat 59.27.100, ...". kConfig: there are no supported ones; the
// message says what to install. The first call loads and tests them.
Result<std::string> ffmpeg_version();

}  // namespace feedline
