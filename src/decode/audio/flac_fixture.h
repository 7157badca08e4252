// SPDX-License-Identifier: Apache-2.0
#pragma once

// Encodes FLAC frames and files as a test describes them.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "decode/audio/audio_fixture.h"

namespace feedline::decode {

using Samples = std::vector<std::int64_t>;

inline unsigned crc_of(const std::string& bytes, unsigned width, unsigned polynomial) {
  unsigned crc = 0;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << (width - 8);
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1U ^ ((crc >> (width - 1) & 1U) != 0 ? polynomial : 0);
  }
  return crc & ((1U << width) - 1);
}

class BitWriter {
 public:
  void write(std::uint64_t value, unsigned bits) {
    for (unsigned i = bits; i-- > 0;) {
      if (count_ % 8 == 0) bytes_ += '\0';
      bytes_.back() = static_cast<char>(bytes_.back() | static_cast<char>((value >> i & 1U) << (7 - count_ % 8)));
      ++count_;
    }
  }
  void write_zeros(std::uint64_t count) {
    for (; count > 0; --count) write(0, 1);
    write(1, 1);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t count_ = 0;
};

// How a subframe stores its samples.
struct FlacCoding {
  enum class Kind : std::uint8_t { kConstant, kVerbatim, kFixed, kLpc } kind = Kind::kVerbatim;
  unsigned order = 0;
  std::vector<int> coefficients = {};  // of kLpc, `order` ones
  unsigned precision = 15, shift = 0;
  unsigned wasted = 0;
  unsigned method = 0, partition_order = 0;
  bool escapes = false;  // residuals as plain numbers, not as Rice codes
};

inline void write_residual(BitWriter& bits, const FlacCoding& coding, const Samples& residual, unsigned order) {
  bits.write(coding.method, 2);
  bits.write(coding.partition_order, 4);
  const unsigned parameter_bits = coding.method == 0 ? 4 : 5;
  const std::size_t size = residual.size() >> coding.partition_order;
  for (std::size_t begin = 0; begin < residual.size(); begin += size) {
    std::uint64_t most = 0;
    for (std::size_t i = std::max<std::size_t>(begin, order); i < begin + size; ++i)
      most = std::max(most, static_cast<std::uint64_t>(residual[i] < 0 ? ~residual[i] : residual[i]));
    const auto width = static_cast<unsigned>(std::bit_width(most)) + 1;
    if (coding.escapes) bits.write((1U << parameter_bits) - 1, parameter_bits);
    // a small parameter, so that some quotients are large
    const unsigned parameter =
        coding.escapes ? (most == 0 ? 0 : width) : std::min(width < 5 ? 0 : width - 5, (1U << parameter_bits) - 2);
    bits.write(parameter, coding.escapes ? 5 : parameter_bits);
    for (std::size_t i = std::max<std::size_t>(begin, order); i < begin + size; ++i) {
      if (coding.escapes) {
        bits.write(static_cast<std::uint64_t>(residual[i]), parameter);
        continue;
      }
      const auto folded = static_cast<std::uint64_t>(residual[i] < 0 ? -2 * residual[i] - 1 : 2 * residual[i]);
      bits.write_zeros(folded >> parameter);
      bits.write(folded, parameter);
    }
  }
}

// Requires: the lowest `wasted` bits of the samples are 0.
inline void write_subframe(BitWriter& bits, const FlacCoding& coding, Samples samples, unsigned width) {
  using Kind = FlacCoding::Kind;
  const unsigned kind = coding.kind == Kind::kConstant   ? 0
                        : coding.kind == Kind::kVerbatim ? 1
                        : coding.kind == Kind::kFixed    ? 8 + coding.order
                                                         : 31 + coding.order;
  bits.write(kind << 1U | (coding.wasted > 0 ? 1U : 0U), 8);
  if (coding.wasted > 0) bits.write_zeros(coding.wasted - 1);
  width -= coding.wasted;
  for (std::int64_t& sample : samples) sample >>= coding.wasted;
  const std::size_t plain = coding.kind == Kind::kConstant   ? 1
                            : coding.kind == Kind::kVerbatim ? samples.size()
                                                             : coding.order;
  for (std::size_t i = 0; i < plain; ++i) bits.write(static_cast<std::uint64_t>(samples[i]), width);
  if (coding.kind == Kind::kConstant || coding.kind == Kind::kVerbatim) return;
  std::vector<int> coefficients = coding.coefficients;
  if (coding.kind == Kind::kFixed) {
    const std::array<std::vector<int>, 5> fixed{{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}};
    coefficients = fixed[coding.order];
  } else {
    bits.write(coding.precision - 1, 4);
    bits.write(coding.shift, 5);
    for (const int factor : coefficients) bits.write(static_cast<std::uint64_t>(factor), coding.precision);
  }
  Samples residual = samples;
  for (std::size_t i = coding.order; i < samples.size(); ++i) {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < coding.order; ++k) sum += coefficients[k] * samples[i - 1 - k];
    residual[i] -= sum >> (coding.kind == Kind::kLpc ? coding.shift : 0);
  }
  write_residual(bits, coding, residual, coding.order);
}

// A number coded as in UTF-8, with up to 36 bits.
inline std::string flac_number(std::uint64_t value) {
  if (value < 0x80) return {static_cast<char>(value)};
  std::string tail;
  unsigned first_bits = 6;
  for (; value >> first_bits != 0; value >>= 6U, --first_bits)
    tail.insert(tail.begin(), static_cast<char>(0x80U | (value & 0x3FU)));
  if (tail.empty() || value >> first_bits != 0) return {};
  return static_cast<char>(0xFFU << (first_bits + 1) | value) + tail;
}

struct FlacFrameFixture {
  std::uint64_t number = 0;
  std::vector<Samples> channels = {};  // as they are stored: for mid/side, the mean and the difference
  unsigned bits = 16, stereo = 0;      // 8: left/side, 9: side/right, 10: mid/side
  bool is_variable = false;
  std::vector<FlacCoding> codings = {FlacCoding{}};  // the last one for the remaining channels, too

  std::string header() const {
    const std::size_t frames = channels[0].size();
    const unsigned bits_code = bits == 8 ? 1 : bits == 12 ? 2 : bits == 16 ? 4 : bits == 20 ? 5 : bits == 24 ? 6 : 0;
    std::string head = is_variable ? "\xFF\xF9" : "\xFF\xF8";
    head += '\x75';  // the size of the block follows, 16 kHz
    head += static_cast<char>((stereo != 0 ? stereo : channels.size() - 1) << 4U | bits_code << 1U);
    head += flac_number(number) + number_bytes(frames - 1, 2, true);
    return head + static_cast<char>(crc_of(head, 8, 0x107));
  }
  std::string frame() const {
    BitWriter writer;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const bool is_side = stereo == 9 ? c == 0 : stereo != 0 && c == 1;
      write_subframe(writer, codings[std::min(c, codings.size() - 1)], channels[c], bits + (is_side ? 1 : 0));
    }
    const std::string bytes = header() + writer.bytes();
    return bytes + number_bytes(crc_of(bytes, 16, 0x18005), 2, true);
  }
};

// STREAMINFO and further blocks of metadata, each with its type.
inline std::string flac_metadata(std::uint64_t samples, unsigned channels = 1, unsigned bits = 16,
                                 const std::vector<std::pair<char, std::string>>& blocks = {}) {
  std::string info = number_bytes(16, 2, true) + number_bytes(65535, 2, true) + number_bytes(0, 6);
  info += number_bytes(
              std::uint64_t{16000} << 44 | std::uint64_t{channels - 1} << 41 | std::uint64_t{bits - 1} << 36 | samples,
              8, true) +
          std::string(16, '\0');
  std::string file = std::string("fLaC") + (blocks.empty() ? '\x80' : '\0') + number_bytes(34, 3, true) + info;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    file += static_cast<char>(blocks[i].first | (i + 1 == blocks.size() ? 0x80 : 0)) +
            number_bytes(blocks[i].second.size(), 3, true) + blocks[i].second;
  return file;
}

// Two tones and noise of a few bits, up to nearly the full scale of `bits` bits.
inline Samples flac_signal(std::size_t count, unsigned bits, unsigned seed = 1) {
  Samples samples(count);
  const double scale = std::ldexp(0.4, static_cast<int>(bits) - 1);
  std::uint32_t state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const double time = static_cast<double>(i + seed * 100);
    const double noise = static_cast<double>(state >> 8U & 0xFFU) / 256 * std::min(16.0, scale / 8);
    samples[i] = std::llround(scale * (std::sin(time / 40) + std::sin(time / 7)) + noise);
  }
  return samples;
}

}  // namespace feedline::decode
