// SPDX-License-Identifier: Apache-2.0
#pragma once

// The structure of a FLAC file (RFC 9639): its metadata, and the positions of its frames. The functions use
// the source only during the call; a source is used by one thread at a time.

#include <cstdint>
#include <vector>

#include "decode/audio/byte_source.h"
#include "decode/audio/flac_frame.h"
#include "feedline/error.h"

namespace feedline::decode {

// The position of a frame.
struct FlacPosition {
  std::uint64_t at = 0;      // byte in the file
  std::uint64_t sample = 0;  // number of its first sample
};

// Numbers of STREAMINFO, SEEKTABLE and the first frame.
struct FlacStream {
  std::uint32_t rate = 0, channels = 0, bits = 0;
  std::uint64_t samples = 0;           // of each channel; 0: unknown
  std::uint32_t most_frame_bytes = 0;  // 0: unknown
  std::uint64_t data_at = 0;           // of the first frame
  std::uint64_t seek_table_at = 0, seek_table_bytes = 0;
  FlacFrameHeader first;

  // Returns whether a frame with this header may belong to the stream.
  bool matches(const FlacFrameHeader& header) const;
  std::uint64_t sample_of(const FlacFrameHeader& header) const {
    return header.is_variable ? header.number : header.number * first.frames;
  }
};
// kData: the metadata or the first frame's header is damaged or truncated.
Result<FlacStream> read_flac_stream(ByteSource& source);

// Returns the position of the frame with a sample, or of an earlier frame if the file is damaged. Searches by
// interpolation, from the seek table's points on if there is one. read_bytes: read at once near the frame, because they
// are needed next. Requires: sample < stream.samples.
Result<FlacPosition> find_flac_frame(ByteSource& source, const FlacStream& stream, std::uint64_t sample,
                                     std::uint64_t read_bytes);

// Returns the samples of each channel, by decoding the last frame. kData: the file does not end with a whole frame.
Result<std::uint64_t> count_flac_samples(ByteSource& source, const FlacStream& stream);

}  // namespace feedline::decode
