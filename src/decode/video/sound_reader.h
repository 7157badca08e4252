// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/audio/audio_reader.h"
#include "decode/video/ffmpeg_library.h"
#include "decode/video/packet_reader.h"
#include "decode/video/sound_track.h"
#include "decode/video/video_file.h"
#include "feedline/error.h"

namespace feedline::decode {

// Reads samples of a video's sound; gaps in the track are silent. Parts that begin within the first 30 s are decoded
// from the start of the track, so that they equal the slice of the whole. Decoding of later parts begins a second
// earlier, which suffices for all codecs but those that add noise that depends on everything before: AAC with noise
// substitution or band replication, AC-3.
class SoundReader final : public AudioReader {
 public:
  // Requires: library and source outlive the reader.
  SoundReader(const FfmpegLibrary& library, std::shared_ptr<const SoundTrack> track, const VideoFile& source);

  Result<void> read(std::uint64_t begin, std::span<float> out) override;
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override;

  // Adds the ranges of the file that read() reads for these samples; none if packets are read in sequence. Requires:
  // the samples exist, and there is at least one.
  static void add_ranges(const SoundTrack& track, std::uint64_t begin, std::uint64_t frames,
                         std::vector<ByteRange>& ranges);

  std::uint64_t bytes_fetched() const { return bytes_fetched_; }
  std::uint64_t bytes_used() const { return bytes_used_; }

 private:
  const FfmpegLibrary& library_;
  const std::shared_ptr<const SoundTrack> track_;
  const VideoFile& source_;
  std::vector<std::byte> room_;
  std::uint64_t bytes_fetched_ = 0, bytes_used_ = 0;
};

}  // namespace feedline::decode
