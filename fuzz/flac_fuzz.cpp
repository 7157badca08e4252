// SPDX-License-Identifier: Apache-2.0
// Subframes of FLAC, without the CRC, which no mutation would get past. Compares the decoder with a plain one, which
// reads a bit at a time: samples, sizes, errors. The first four bytes choose the frame's header.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "decode/audio/flac_frame.h"

namespace {

using namespace feedline;
using Stereo = decode::FlacFrameHeader::Stereo;

// Thrown for damage, and if a number exceeds its range, for which RFC 9639 states no result.
struct Damaged {};
struct Unspecified {};

class PlainBits {
 public:
  explicit PlainBits(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t read(unsigned count) {
    std::uint64_t value = 0;
    for (; count > 0; --count, ++position) {
      if (position / 8 >= bytes_.size()) throw Damaged();
      value = value << 1U | (bytes_[position / 8] >> (7 - position % 8) & 1U);
    }
    return value;
  }
  std::int64_t read_signed(unsigned count) {
    const std::uint64_t value = read(count), sign = std::uint64_t{1} << (count - 1);
    return static_cast<std::int64_t>(value ^ sign) - static_cast<std::int64_t>(sign);
  }
  std::uint64_t zeros() {
    std::uint64_t count = 0;
    while (read(1) == 0) ++count;
    return count;
  }
  std::size_t position = 0;

 private:
  std::span<const std::uint8_t> bytes_;
};

void check_range(std::int64_t value, unsigned bits) {
  const std::int64_t most = std::int64_t{1} << (bits - 1);
  if (value < -most || value >= most) throw Unspecified();
}

std::vector<std::int64_t> plain_residual(PlainBits& bits, std::uint32_t frames, std::uint32_t order) {
  const auto method = bits.read(2), partitions = std::uint64_t{1} << bits.read(4);
  if (method > 1 || frames % partitions != 0 || frames / partitions < order) throw Damaged();
  const unsigned width = method == 0 ? 4 : 5;
  std::vector<std::int64_t> residual(order);
  for (std::uint64_t partition = 1; partition <= partitions; ++partition) {
    const auto parameter = static_cast<unsigned>(bits.read(width));
    const bool is_escape = parameter == (1U << width) - 1;
    const auto plain = is_escape ? static_cast<unsigned>(bits.read(5)) : 0;
    while (residual.size() < frames / partitions * partition) {
      if (is_escape) {
        residual.push_back(plain == 0 ? 0 : bits.read_signed(plain));
        continue;
      }
      const std::uint64_t quotient = bits.zeros(), folded = (quotient << parameter) + bits.read(parameter);
      if (folded > 0xFFFFFFFF) throw Unspecified();
      residual.push_back((folded & 1U) != 0 ? -static_cast<std::int64_t>(folded >> 1U) - 1
                                            : static_cast<std::int64_t>(folded >> 1U));
    }
  }
  return residual;
}

std::vector<std::int64_t> plain_subframe(PlainBits& bits, unsigned width, std::uint32_t frames) {
  if (bits.read(1) != 0) throw Damaged();
  const auto kind = static_cast<unsigned>(bits.read(6));
  const std::uint64_t wasted = bits.read(1) != 0 ? bits.zeros() + 1 : 0;
  if (wasted >= width) throw Damaged();
  width -= static_cast<unsigned>(wasted);
  std::vector<std::int64_t> samples;
  if (kind == 0) {
    samples.assign(frames, bits.read_signed(width));
  } else if (kind == 1) {
    while (samples.size() < frames) samples.push_back(bits.read_signed(width));
  } else if ((kind >= 8 && kind <= 12) || kind >= 32) {
    const std::uint32_t order = kind >= 32 ? kind - 31 : kind - 8;
    if (order > frames) throw Damaged();
    while (samples.size() < order) samples.push_back(bits.read_signed(width));
    constexpr std::int64_t kFixed[5][4] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
    std::vector<std::int64_t> factors(kFixed[order % 5], kFixed[order % 5] + order % 5);
    std::int64_t shift = 0;
    if (kind >= 32) {
      const auto precision = static_cast<unsigned>(bits.read(4)) + 1;
      shift = bits.read_signed(5);
      if (precision == 16 || shift < 0) throw Damaged();
      factors.clear();
      while (factors.size() < order) factors.push_back(bits.read_signed(precision));
    }
    const std::vector<std::int64_t> residual = plain_residual(bits, frames, order);
    for (std::uint32_t i = order; i < frames; ++i) {
      std::int64_t sum = 0;
      for (std::uint32_t k = 0; k < order; ++k) sum += factors[k] * samples[i - 1 - k];
      samples.push_back((sum >> shift) + residual[i]);
      check_range(samples.back(), width);
    }
  } else {
    throw Damaged();
  }
  for (std::int64_t& sample : samples) sample *= std::int64_t{1} << wasted;
  return samples;
}

// Interleaved samples of two channels or more, and the size in bytes.
struct Plain {
  std::vector<std::int64_t> samples;
  std::size_t bytes = 0;
};

Plain plain_frame(std::span<const std::uint8_t> bytes, const decode::FlacFrameHeader& header, unsigned width) {
  PlainBits bits(bytes);
  Plain plain{std::vector<std::int64_t>(std::size_t{header.frames} * header.channels)};
  for (std::uint32_t c = 0; c < header.channels; ++c) {
    const bool is_side = header.stereo != Stereo::kSeparate && c == (header.stereo == Stereo::kSideRight ? 0 : 1);
    const auto samples = plain_subframe(bits, width + (is_side ? 1 : 0), header.frames);
    for (std::size_t i = 0; i < samples.size(); ++i) plain.samples[i * header.channels + c] = samples[i];
  }
  for (std::size_t i = 0; header.stereo != Stereo::kSeparate && i < plain.samples.size(); i += 2) {
    std::int64_t &a = plain.samples[i], &b = plain.samples[i + 1];
    if (header.stereo == Stereo::kLeftSide) b = a - b;
    if (header.stereo == Stereo::kSideRight) a = a + b;
    if (header.stereo == Stereo::kMidSide) {
      const std::int64_t twice = 2 * a + (b & 1);
      a = (twice + b) >> 1;
      b = (twice - b) >> 1;
    }
    check_range(a, width);
    check_range(b, width);
  }
  plain.bytes = (bits.position + 7) / 8;
  return plain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const auto assignment = static_cast<unsigned>(data[0] % 11), width = static_cast<unsigned>(4 + data[1] % 29);
  decode::FlacFrameHeader header{.frames = 1 + (data[2] << 8U | data[3]) % 2048U,
                                 .channels = assignment < 8 ? assignment + 1 : 2,
                                 .stereo = static_cast<Stereo>(assignment < 8 ? 0 : assignment - 7)};
  const std::vector<std::uint8_t> bytes(data + 4, data + size);  // of this size, so that reads beyond it are reported
  decode::FlacFrameDecoder decoder;
  const std::uint32_t wanted = header.frames / 3;
  std::vector<float> first(std::size_t{wanted} * header.channels), all(std::size_t{header.frames} * header.channels);
  std::vector<std::int16_t> integers(all.size());
  const auto some = decoder.decode_samples(std::as_bytes(std::span(bytes)), header, width, wanted);
  if (some && *some > 0) decoder.copy(0, std::span(first));
  const auto decoded = decoder.decode_samples(std::as_bytes(std::span(bytes)), header, width, header.frames);
  if (some.has_value() != decoded.has_value() || (some && *some != *decoded)) std::abort();
  const bool is_decoded = decoded && *decoded > 0;
  if (is_decoded) {
    decoder.copy(0, std::span(all));
    decoder.copy(0, std::span(integers));
    if (!std::ranges::equal(first, std::span(all).first(first.size()))) std::abort();
  }
  try {
    const Plain plain = plain_frame(bytes, header, width);
    if (!is_decoded || *decoded != plain.bytes) std::abort();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto exact =
          static_cast<float>(std::ldexp(static_cast<double>(plain.samples[i]), 1 - static_cast<int>(width)));
      if (all[i] != exact || integers[i] != plain.samples[i] * (std::int64_t{1} << 32) >> width >> 16) std::abort();
    }
  } catch (Damaged) {
    if (is_decoded) std::abort();
  } catch (Unspecified) {
  }
  return 0;
}
