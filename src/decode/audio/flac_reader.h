// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "decode/audio/audio_reader.h"
#include "decode/audio/flac_stream.h"

namespace feedline::decode {

// Reads a FLAC file that is not in an Ogg container, from the frame with the first sample on. Refers to the source.
// Used by one thread.
class FlacReader final : public AudioReader {
 public:
  static Result<std::unique_ptr<AudioReader>> open(ByteSource& source);
  Result<void> read(std::uint64_t begin, std::span<float> out) override { return read_as(begin, out); }
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override { return read_as(begin, out); }

 private:
  FlacReader(ByteSource& source, const FlacStream& stream);
  template <typename T>
  Result<void> read_as(std::uint64_t begin, std::span<T> out);
  template <typename T>
  Result<void> decode_from(FlacPosition position, std::uint64_t begin, std::span<T> out);
  std::uint64_t bytes_of(std::uint64_t samples) const;
  std::unexpected<Error> failed(const char* kind, const std::string& what, std::uint64_t sample) const;

  ByteSource& source_;
  const FlacStream stream_;
  FlacFrameDecoder decoder_;
  FlacPosition last_;  // the last frame that was decoded
};

}  // namespace feedline::decode
