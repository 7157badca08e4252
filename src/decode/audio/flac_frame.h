// SPDX-License-Identifier: Apache-2.0
#pragma once

// Frames of FLAC (RFC 9639, section 9): headers, and the samples after them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"

namespace feedline::decode {

struct FlacFrameHeader {
  std::uint64_t number = 0;  // of the first sample if is_variable, otherwise of the frame
  std::uint32_t frames = 0;  // samples of each channel
  std::uint32_t channels = 0;
  std::uint32_t bits = 0;  // of a sample; 0: as in STREAMINFO
  std::uint8_t rate_code = 0;
  enum class Stereo : std::uint8_t { kSeparate, kLeftSide, kSideRight, kMidSide } stereo = Stereo::kSeparate;
  bool is_variable = false;  // frames of the stream differ in size
  std::size_t bytes = 0;     // of the header
};
constexpr std::size_t kMostFlacHeader = 16;       // bytes
constexpr std::size_t kMostFlacFrame = 16 << 20;  // bytes; STREAMINFO states the size with 24 bits

// Returns nullopt if the bytes do not begin with a whole header whose CRC-8 is right.
std::optional<FlacFrameHeader> parse_flac_header(std::span<const std::byte> bytes);

// Decodes frames. Its buffers are reused for the next frame. Not thread-safe.
class FlacFrameDecoder {
 public:
  // Decodes the frame at the start of `bytes`, at least its first `wanted` samples of each channel. Returns its size in
  // bytes, or 0 if `bytes` ends before the frame. kData: the frame is damaged. bits: of a sample, 4 to 32.
  Result<std::size_t> decode(std::span<const std::byte> bytes, const FlacFrameHeader& header, std::uint32_t bits,
                             std::uint32_t wanted);
  // The same without the check of the CRC-16, for tests with damaged samples.
  Result<std::size_t> decode_samples(std::span<const std::byte> bytes, const FlacFrameHeader& header,
                                     std::uint32_t bits, std::uint32_t wanted);

  // Writes the decoded samples from number `begin` of the frame on, with interleaved channels. Requires: they exist,
  // and were wanted. int16: drops low bits.
  void copy(std::uint32_t begin, std::span<float> out) const;
  void copy(std::uint32_t begin, std::span<std::int16_t> out) const;

 private:
  template <typename Sample>
  Result<std::size_t> decode_as(std::vector<Sample>& samples, std::span<const std::byte> bytes, std::uint32_t wanted);
  template <typename Sample, typename Out>
  void copy_from(const std::vector<Sample>& samples, std::uint32_t begin, std::span<Out> out) const;
  template <typename Out>
  void copy_to(std::uint32_t begin, std::span<Out> out) const;

  FlacFrameHeader header_;  // of the decoded frame
  std::uint32_t bits_ = 0;
  // One plane for each channel. The difference of two channels of 31 or 32 bits needs 64-bit numbers.
  std::vector<std::int32_t> narrow_;
  std::vector<std::int64_t> wide_;
};

}  // namespace feedline::decode
