// SPDX-License-Identifier: Apache-2.0
#include "decode/video/ffmpeg_library.h"
#include "feedline/foreign_images.h"

namespace feedline {

std::span<const std::string_view> video_extensions() {
  static constexpr std::string_view kExtensions[] = {"mp4", "mkv",  "webm", "mov", "m4v", "avi", "ts", "m2ts",
                                                     "mts", "mpeg", "mpg",  "3gp", "flv", "wmv", "ogv"};
  return kExtensions;
}

Result<std::string> ffmpeg_version() {
  const Result<decode::FfmpegLibrary>& library = decode::ffmpeg_library();
  if (!library) return std::unexpected(library.error());
  return library->version;
}

}  // namespace feedline
