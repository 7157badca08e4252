// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decode/audio/byte_source.h"
#include "feedline/error.h"

namespace feedline::decode {

// One frame header of MPEG audio.
struct Mp3Header {
  std::uint32_t rate = 0, channels = 0;
  std::uint32_t frame_bytes = 0;    // with the header; 0 for a free format
  std::uint32_t frame_samples = 0;  // of each channel
  bool is_layer_3 = false, is_mpeg_1 = false;
};
// Returns nullopt if the bytes do not begin with a frame header.
std::optional<Mp3Header> parse_mp3_header(std::span<const std::byte> bytes);

// Returns the size of an ID3v2 tag at the start of a file, or 0.
std::uint64_t id3_bytes(std::span<const std::byte> head);

// A file whose length no header states: decoders then estimate it from the bit rate of the first frame, which is wrong
// for variable bit rates.
struct Mp3Count {
  std::uint64_t begin = 0;        // of the first frame
  std::uint64_t samples = 0;      // of each channel
  std::vector<std::byte> header;  // a frame with a Xing header, to be inserted at `begin`
};
// Counts the frames. Returns nullopt if the first frame states the length (Xing, Info, VBRI), or the file is not layer
// III or has a free format.
Result<std::optional<Mp3Count>> count_mp3_frames(ByteSource& source);

}  // namespace feedline::decode
