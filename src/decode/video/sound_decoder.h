// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes packets of sound with FFmpeg's libavcodec.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "decode/video/ffmpeg_library.h"
#include "decode/video/sound_track.h"
#include "feedline/error.h"

namespace feedline::decode {

// Owns a decoder. Not thread-safe.
class SoundDecoder {
 public:
  // kAll: also returns samples that the encoder added; otherwise, a decoder removes those that the stream's parameters
  // state. Requires: library outlives the decoder.
  enum class Output : std::uint8_t { kAll, kHeard };
  explicit SoundDecoder(const FfmpegLibrary& library, Output output = Output::kAll)
      : library_(library), output_(output) {}
  ~SoundDecoder();
  SoundDecoder(const SoundDecoder&) = delete;
  SoundDecoder& operator=(const SoundDecoder&) = delete;

  // kData: the library has no such decoder, or it refuses the stream. Call one of them, once.
  Result<void> open(const ffmpeg::CodecParameters* parameters);
  Result<void> open(const SoundTrack& track);

  // The samples that were decoded last.
  struct Samples {
    std::int64_t packet = 0;  // number of the packet that holds the first one
    std::uint64_t count = 0;
    std::uint32_t rate = 0, channels = 0;
  };
  using Sink = std::function<Result<void>(const Samples& samples)>;
  // Receives the number of a damaged packet, and a description.
  using Damage = std::function<void(std::int64_t packet, const std::string& what)>;
  // Decodes packet number `packet`; no bytes: returns what the decoder still holds.
  Result<void> decode(std::int64_t packet, std::span<const std::byte> bytes, const Sink& sink, const Damage& damage);

  // In a sink: writes the samples [begin, begin + frames) as floats, with interleaved channels. kData: the decoder's
  // sample format is unknown.
  Result<void> copy(std::uint64_t begin, std::uint64_t frames, float* out) const;

 private:
  Result<void> begin(int codec);
  Result<void> finish_open();

  const FfmpegLibrary& library_;
  const Output output_;
  const ffmpeg::Codec* codec_ = nullptr;
  ffmpeg::CodecContext* context_ = nullptr;
  ffmpeg::Packet* packet_ = nullptr;
  ffmpeg::Frame* frame_ = nullptr;
};

}  // namespace feedline::decode
