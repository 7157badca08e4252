// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/pcm_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace feedline::decode {
namespace {

// Converted at a time, so that the stored bytes are still in the cache.
constexpr std::uint64_t kConvertedBytes = 64 << 10;

// ITU-T G.711, to the 16-bit range.
constexpr std::int16_t from_mulaw(std::uint8_t code) {
  const int inverted = ~code & 0xFF;
  const int magnitude = ((((inverted & 0x0F) << 3) + 0x84) << ((inverted & 0x70) >> 4)) - 0x84;
  return static_cast<std::int16_t>((inverted & 0x80) != 0 ? -magnitude : magnitude);
}
constexpr std::int16_t from_alaw(std::uint8_t code) {
  const int toggled = code ^ 0x55;
  const int segment = (toggled & 0x70) >> 4;
  int magnitude = ((toggled & 0x0F) << 4) + 8;
  if (segment > 0) magnitude = (magnitude + 0x100) << (segment - 1);
  return static_cast<std::int16_t>((toggled & 0x80) != 0 ? magnitude : -magnitude);
}
template <std::int16_t (*kFrom)(std::uint8_t)>
constexpr std::array<std::int16_t, 256> kTable = [] {
  std::array<std::int16_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = kFrom(static_cast<std::uint8_t>(i));
  return table;
}();

// Loads the stored number at index i, left-justified in 32 bits if it is an integer.
template <std::uint32_t kBytes, bool kBigEndian>
std::int32_t integer_at(const std::byte* data, std::size_t i) {
  const std::byte* const from = data + i * kBytes;
  if constexpr (kBytes == 1) return static_cast<std::int32_t>(static_cast<std::uint32_t>(*from) << 24U);
  if constexpr (kBytes == 2) {
    std::uint16_t value = 0;
    std::memcpy(&value, from, sizeof value);
    if constexpr (kBigEndian) value = std::byteswap(value);
    return static_cast<std::int32_t>(std::uint32_t{value} << 16U);
  }
  if constexpr (kBytes == 3) {
    const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(from[k]); };
    return static_cast<std::int32_t>(kBigEndian ? byte(0) << 24U | byte(1) << 16U | byte(2) << 8U
                                                : byte(2) << 24U | byte(1) << 16U | byte(0) << 8U);
  }
  std::uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  if constexpr (kBigEndian) value = std::byteswap(value);
  return static_cast<std::int32_t>(value);
}

template <typename Float, bool kBigEndian>
Float float_at(const std::byte* data, std::size_t i) {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  Bits bits = 0;
  std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
  if constexpr (kBigEndian) bits = std::byteswap(bits);
  return std::bit_cast<Float>(bits);
}

void deliver(std::int32_t value, float& out) { out = static_cast<float>(value) * 0x1p-31F; }
void deliver(std::int32_t value, std::int16_t& out) { out = static_cast<std::int16_t>(value >> 16); }
void deliver_float(float value, float& out) { out = value; }
void deliver_float(float value, std::int16_t& out) { out = to_int16(value); }

template <bool kBigEndian, typename T>
void convert(const PcmLayout& layout, const std::byte* data, std::span<T> out) {
  const auto integers = [&]<std::uint32_t kBytes>(std::uint32_t flipped) {
    for (std::size_t i = 0; i < out.size(); ++i)
      deliver(static_cast<std::int32_t>(static_cast<std::uint32_t>(integer_at<kBytes, kBigEndian>(data, i)) ^ flipped),
              out[i]);
  };
  const auto coded = [&](const std::array<std::int16_t, 256>& table) {
    for (std::size_t i = 0; i < out.size(); ++i)
      deliver(static_cast<std::int32_t>(table[static_cast<std::uint8_t>(data[i])]) * 65536, out[i]);
  };
  switch (layout.code) {
    case PcmCode::kMulaw:
      return coded(kTable<from_mulaw>);
    case PcmCode::kAlaw:
      return coded(kTable<from_alaw>);
    case PcmCode::kUnsigned:
      return integers.template operator()<1>(0x80000000U);
    case PcmCode::kFloat:
      for (std::size_t i = 0; i < out.size(); ++i)
        deliver_float(layout.sample_bytes == 4 ? float_at<float, kBigEndian>(data, i)
                                               : static_cast<float>(float_at<double, kBigEndian>(data, i)),
                      out[i]);
      return;
    case PcmCode::kSigned:
      switch (layout.sample_bytes) {
        case 1:
          return integers.template operator()<1>(0);
        case 2:
          return integers.template operator()<2>(0);
        case 3:
          return integers.template operator()<3>(0);
        default:
          return integers.template operator()<4>(0);
      }
  }
}

}  // namespace

PcmReader::PcmReader(ByteSource& source, const PcmLayout& layout) : source_(source), layout_(layout) {
  info_ = {layout.format, layout.rate, layout.channels, layout.frames,
           layout.code == PcmCode::kFloat ? SampleKind::kFloat : SampleKind::kInteger};
}

template <typename T>
Result<void> PcmReader::read_as(std::uint64_t begin, std::span<T> out) {
  const std::uint64_t frame_bytes = std::uint64_t{layout_.sample_bytes} * layout_.channels;
  FEEDLINE_CHECK(begin + out.size() / layout_.channels <= layout_.frames);
  std::uint64_t at = layout_.data_at + begin * frame_bytes;
  const std::size_t block = kConvertedBytes / layout_.sample_bytes;
  while (!out.empty()) {
    const auto samples = out.first(std::min(block, out.size()));
    const std::uint64_t wanted = samples.size() * layout_.sample_bytes;
    FEEDLINE_TRY(const auto bytes, source_.bytes(at, wanted));
    if (bytes.size() < wanted)
      return data_error(std::string(layout_.format) + ": the file became shorter while it was read", "decode");
    if (layout_.is_big_endian)
      convert<true>(layout_, bytes.data(), samples);
    else
      convert<false>(layout_, bytes.data(), samples);
    at += wanted;
    out = out.subspan(samples.size());
  }
  return {};
}

Result<void> PcmReader::read(std::uint64_t begin, std::span<float> out) { return read_as(begin, out); }
Result<void> PcmReader::read(std::uint64_t begin, std::span<std::int16_t> out) { return read_as(begin, out); }

}  // namespace feedline::decode
