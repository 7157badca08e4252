// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sound of a video file: where the packets of a sound stream are, and which samples they hold. With it, a part of
// the sound is decoded from the part's bytes. Readers in several threads share a track, which never changes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/video/ffmpeg_library.h"
#include "decode/video/video_file.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"

namespace feedline::decode {

struct SoundTrack {
  std::uint32_t rate = 0, channels = 0;
  // When sample 0 is heard, in units of stream.time_num / stream.time_den seconds, which count as those of the frames.
  std::int64_t start = 0;
  // pts: the number of the packet's first sample. Negative numbers, and those from `end` on, are not heard: the encoder
  // added them, or an edit list excludes them.
  VideoIndex stream;

  double start_s() const {
    return static_cast<double>(start) * static_cast<double>(stream.time_num) / static_cast<double>(stream.time_den);
  }
};

// Reads the file's sound packets once. If the container's times do not determine the number of each sample, as in
// Matroska, whose times are milliseconds, all packets are decoded. video: the stream to which the sound belongs. kData:
// the file is damaged, or has no sound, or no supported kind of sound.
Result<SoundTrack> scan_sound(const FfmpegLibrary& library, const VideoFile& source, int video);

// Bytes that read_sound_track() reads.
std::vector<std::byte> write_sound_track(const SoundTrack& track);
// kData: the bytes are damaged, or of another version.
Result<SoundTrack> read_sound_track(std::span<const std::byte> bytes);

}  // namespace feedline::decode
