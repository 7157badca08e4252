// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "decode/audio/byte_source.h"
#include "feedline/error.h"

namespace feedline::decode {

enum class PcmCode : std::uint8_t { kSigned, kUnsigned, kFloat, kMulaw, kAlaw };

// The uncompressed samples of a file: frames of interleaved channels.
struct PcmLayout {
  std::string_view format;  // "WAV"
  PcmCode code = PcmCode::kSigned;
  bool is_big_endian = false;
  std::uint32_t sample_bytes = 0;
  std::uint32_t channels = 0;
  std::uint32_t rate = 0;
  std::uint64_t data_at = 0;  // in the file
  std::uint64_t frames = 0;
  // The code, if only libsndfile may support it ("0x11"); the other members are then unspecified.
  std::string unsupported = {};
};

// Read the headers of files whose first bytes were recognised. kData: a header is damaged, or states more samples than
// the file has.
Result<PcmLayout> read_wav_header(ByteSource& source);
Result<PcmLayout> read_aiff_header(ByteSource& source);
Result<PcmLayout> read_au_header(ByteSource& source);

}  // namespace feedline::decode
