// SPDX-License-Identifier: Apache-2.0
#pragma once

// Frame headers of MPEG audio. The functions have no state and are thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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

// Counts the samples of each channel of a file whose length no header states. Decoders estimate it from the bit rate of
// the first frame, which is wrong for variable bit rates. Returns nullopt if the first frame states the length (Xing,
// Info, VBRI), or the file is not layer III or has a free format.
Result<std::optional<std::uint64_t>> count_mp3_samples(ByteSource& source);

}  // namespace feedline::decode
