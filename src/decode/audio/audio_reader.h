// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "decode/audio/byte_source.h"
#include "feedline/error.h"

namespace feedline::decode {

enum class SampleKind : std::uint8_t {
  kInteger,  // lossless integers
  kFloat,    // stored floats
  kLossy,    // decoded to floats
};

struct AudioInfo {
  std::string_view format;  // "WAV", "FLAC", "MP3"
  std::uint32_t rate = 0;   // frames per second
  std::uint32_t channels = 0;
  std::uint64_t frames = 0;  // samples of each channel, at least 1
  SampleKind kind = SampleKind::kInteger;
};

// The range of rates and channels that files may have; other numbers are damage.
constexpr std::uint32_t kMostRate = 10'000'000;
constexpr std::uint32_t kMostChannels = 1024;

// Reads the samples of one open file. Used by one thread.
class AudioReader {
 public:
  virtual ~AudioReader() = default;
  const AudioInfo& info() const { return info_; }
  // Reads consecutive frames from `begin` on, with interleaved channels. The values do not depend on earlier reads, for
  // Opus within 5e-3. kData: the samples are damaged or missing. Requires: out.size() is a multiple of the channels,
  // and the frames exist.
  virtual Result<void> read(std::uint64_t begin, std::span<float> out) = 0;
  virtual Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) = 0;

 protected:
  AudioInfo info_;
};

// Opens a file by its content. The source must outlive the reader. kData: the file is not audio, is damaged or
// truncated, or has no samples. kConfig: libsndfile or FFmpeg is required and not installed, or is too old for the
// format.
Result<std::unique_ptr<AudioReader>> open_audio(ByteSource& source);

// Returns the usual extension of an audio file whose first bytes are given, without a dot, or "" if it is not audio.
std::string_view audio_extension(std::span<const std::byte> head);
constexpr std::size_t kAudioHead = 16;
// The same, or "bin" if it is not audio, to store it as a file.
std::string_view audio_extension_to_store(std::span<const std::byte> file);
// Returns whether files with this extension (lower case, without a dot) are audio.
bool is_audio_extension(std::string_view extension);
// All of them.
std::vector<std::string_view> audio_extensions();
// kConfig: files with this extension need a library that is not installed; the message names it.
Result<void> check_audio_decoder(std::string_view extension);

// round(x * 32768), clipped; 0 for NaN.
std::int16_t to_int16(float sample);

}  // namespace feedline::decode
