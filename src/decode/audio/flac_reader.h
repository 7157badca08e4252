// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/audio/audio_reader.h"

namespace feedline::decode {

// The numbers of a FLAC file's header (STREAMINFO), and of its first frame.
struct FlacStream {
  std::uint32_t rate = 0, channels = 0;
  std::uint64_t frames = 0;        // samples of each channel; 0: unknown
  std::uint32_t block_frames = 0;  // of each FLAC frame but the last; 0: they differ
  std::uint32_t most_frame_bytes = 0;
  std::uint64_t data_at = 0;  // of the first FLAC frame
  std::vector<std::byte> stream_info;
};
// kData: the header is damaged or truncated.
Result<FlacStream> read_flac_header(ByteSource& source);

// The position of a FLAC frame.
struct FlacPosition {
  std::uint64_t at = 0;     // byte in the file
  std::uint64_t frame = 0;  // its first sample
};
// Returns a FLAC frame at most a few before the one with sample `frame`, by interpolation; the first one if the search
// fails. Requires: frame < stream.frames.
Result<FlacPosition> find_flac_frame(ByteSource& source, const FlacStream& stream, std::uint64_t frame);

// Reads a FLAC file. libsndfile decodes it from the FLAC frame with the first sample on: its own seeking decodes
// several FLAC frames at each step. libsndfile must be installed, but is not called
// before the first read. Refers to the source. Used by one thread.
class FlacReader final : public AudioReader {
 public:
  static Result<std::unique_ptr<AudioReader>> open(ByteSource& source);
  Result<void> read(std::uint64_t begin, std::span<float> out) override { return read_as(begin, out); }
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override { return read_as(begin, out); }

 private:
  FlacReader(ByteSource& source, FlacStream stream);
  Result<void> start_at(const FlacPosition& position);
  template <typename T>
  Result<void> read_as(std::uint64_t begin, std::span<T> out);

  ByteSource& source_;
  const FlacStream stream_;
  FlacPosition position_;                 // the start of the part
  std::unique_ptr<ByteSource> part_;      // a header, and the file from position_ on
  std::unique_ptr<AudioReader> decoder_;  // of the part
  std::uint64_t next_ = 0;                // sample after the last read
};

}  // namespace feedline::decode
