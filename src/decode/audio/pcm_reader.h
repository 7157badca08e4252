// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/audio/audio_reader.h"
#include "decode/audio/pcm_layout.h"

namespace feedline::decode {

// Reads uncompressed samples from the source, which must outlive the reader. Used by one thread.
class PcmReader final : public AudioReader {
 public:
  // Requires: layout.unsupported is empty.
  PcmReader(ByteSource& source, const PcmLayout& layout);
  Result<void> read(std::uint64_t begin, std::span<float> out) override;
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override;

 private:
  template <typename T>
  Result<void> read_as(std::uint64_t begin, std::span<T> out);

  ByteSource& source_;
  const PcmLayout layout_;
};

}  // namespace feedline::decode
