// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "decode/audio/flac_fixture.h"

namespace feedline::decode {
namespace {

using Kind = FlacCoding::Kind;

constexpr std::size_t kFrames = 192;

// Decodes a frame and compares it with the samples, by channel.
void expect_decoded(const FlacFrameFixture& fixture, const std::vector<Samples>& expected) {
  const std::string frame = fixture.frame();
  const auto header = parse_flac_header(bytes_of(frame));
  ASSERT_TRUE(header);
  ASSERT_EQ(header->frames, expected[0].size());
  ASSERT_EQ(header->channels, expected.size());
  FlacFrameDecoder decoder;
  const std::string longer = frame + "more";
  for (const std::string* bytes : {&frame, &longer}) {
    const auto size = decoder.decode(bytes_of(*bytes), *header, fixture.bits, header->frames);
    ASSERT_TRUE(size) << size.error().what;
    ASSERT_EQ(*size, frame.size());
  }
  const std::size_t channels = expected.size();
  std::vector<float> floats(expected[0].size() * channels);
  std::vector<std::int16_t> integers(floats.size());
  decoder.copy(0, std::span(floats));
  decoder.copy(0, std::span(integers));
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < expected[c].size(); ++i) {
      const std::int64_t value = expected[c][i];
      const auto as_float =
          static_cast<float>(std::ldexp(static_cast<double>(value), 1 - static_cast<int>(fixture.bits)));
      ASSERT_EQ(floats[i * channels + c], as_float) << "channel " << c << ", sample " << i;
      const std::int64_t wide = value * (std::int64_t{1} << 32) >> fixture.bits;  // of 32 bits
      ASSERT_EQ(integers[i * channels + c], wide >> 16) << "channel " << c << ", sample " << i;
    }
  // only the first samples
  ASSERT_TRUE(decoder.decode(bytes_of(frame), *header, fixture.bits, 50));
  std::vector<float> some(7 * channels);
  decoder.copy(43, std::span(some));
  EXPECT_TRUE(std::ranges::equal(some, std::span(floats).subspan(43 * channels, some.size())));
}

void expect_decoded(const FlacCoding& coding, unsigned bits) {
  SCOPED_TRACE("kind " + std::to_string(static_cast<int>(coding.kind)) + ", order " + std::to_string(coding.order) +
               ", " + std::to_string(bits) + " bits");
  Samples samples = flac_signal(kFrames, bits);
  if (coding.kind == Kind::kConstant) samples.assign(kFrames, -(std::int64_t{1} << (bits - 2)));
  for (std::int64_t& sample : samples) sample = sample >> coding.wasted << coding.wasted;
  expect_decoded({.channels = {samples}, .bits = bits, .codings = {coding}}, {samples});
}

// Coefficients that continue the signal, with small ones at the end.
std::vector<int> coefficients(unsigned order, unsigned shift) {
  std::vector<int> factors(order, 0);
  factors[0] = static_cast<int>((order > 1 ? 2U : 1U) << shift) - 1;
  if (order > 1) factors[1] = -static_cast<int>(1U << shift);
  for (unsigned k = 2; k < order; ++k) factors[k] = static_cast<int>(k % 5) - 2;
  return factors;
}

TEST(FlacFrame, DecodesEveryKindAndWidth) {
  for (unsigned bits = 4; bits <= 32; ++bits) {
    expect_decoded({.kind = Kind::kConstant}, bits);
    expect_decoded({.kind = Kind::kVerbatim}, bits);
    for (unsigned order = 0; order <= 4; ++order)
      expect_decoded({.kind = Kind::kFixed, .order = order, .method = 1}, bits);
    for (const unsigned order : {1U, 2U, 3U, 8U, 12U, 13U, 32U})
      expect_decoded(
          {.kind = Kind::kLpc, .order = order, .coefficients = coefficients(order, 9), .shift = 9, .method = 1}, bits);
  }
}

TEST(FlacFrame, SumsExceed32Bits) {
  const FlacCoding coding{
      .kind = Kind::kLpc, .order = 4, .coefficients = {16383, 16383, -16383, -16383}, .shift = 14, .method = 1};
  for (const unsigned bits : {16U, 20U, 24U, 30U}) expect_decoded(coding, bits);
}

TEST(FlacFrame, DecodesEveryCodingOfResiduals) {
  for (const unsigned method : {0U, 1U})
    for (const unsigned partitions : {0U, 1U, 3U, 6U})
      for (const bool escapes : {false, true})
        for (const unsigned bits : {8U, 16U, 24U})
          expect_decoded(
              {.kind = Kind::kFixed, .order = 2, .method = method, .partition_order = partitions, .escapes = escapes},
              bits);
  // a partition whose residuals are 0, and one without residuals
  const Samples line(kFrames, 77);
  for (const bool escapes : {false, true})
    expect_decoded({.channels = {line}, .codings = {{.kind = Kind::kFixed, .order = 1, .escapes = escapes}}}, {line});
  expect_decoded({.kind = Kind::kFixed, .order = 3, .method = 1, .partition_order = 6}, 16);
}

TEST(FlacFrame, ShiftsWastedBits) {
  for (const unsigned bits : {8U, 16U, 24U, 32U})
    for (const unsigned wasted : {1U, 3U, 6U})
      for (const Kind kind : {Kind::kConstant, Kind::kVerbatim, Kind::kFixed})
        expect_decoded({.kind = kind, .order = kind == Kind::kFixed ? 1U : 0U, .wasted = wasted, .method = 1}, bits);
}

TEST(FlacFrame, JoinsStereo) {
  for (unsigned bits = 4; bits <= 32; ++bits)
    for (const Kind kind : {Kind::kVerbatim, Kind::kFixed}) {
      const Samples left = flac_signal(kFrames, bits, 1), right = flac_signal(kFrames, bits, 2);
      Samples side(kFrames), mid(kFrames);
      for (std::size_t i = 0; i < kFrames; ++i) {
        side[i] = left[i] - right[i];
        mid[i] = (left[i] + right[i]) >> 1;
      }
      const FlacCoding coding{.kind = kind, .order = kind == Kind::kFixed ? 2U : 0U, .method = 1};
      const auto check = [&](unsigned stereo, const Samples& first, const Samples& second) {
        SCOPED_TRACE(std::to_string(bits) + " bits, stereo " + std::to_string(stereo));
        expect_decoded({.channels = {first, second}, .bits = bits, .stereo = stereo, .codings = {coding}},
                       {left, right});
      };
      check(0, left, right);
      check(8, left, side);
      check(9, side, right);
      check(10, mid, side);
    }
}

TEST(FlacFrame, DecodesEightChannels) {
  std::vector<Samples> channels;
  for (unsigned c = 0; c < 8; ++c) channels.push_back(flac_signal(kFrames, 16, c + 1));
  expect_decoded({.channels = channels, .codings = {{.kind = Kind::kFixed, .order = 1}, {}}}, channels);
}

TEST(FlacFrame, ReadsHeaders) {
  for (const std::uint64_t number :
       {0ULL, 127ULL, 128ULL, 2047ULL, 2048ULL, 65536ULL, 2097152ULL, 67108864ULL, 2147483648ULL, 68719476735ULL}) {
    const std::string header = FlacFrameFixture{.number = number, .channels = {Samples(4608)}}.header();
    const auto parsed = parse_flac_header(bytes_of(header));
    ASSERT_TRUE(parsed) << number;
    EXPECT_EQ(parsed->number, number);
    EXPECT_EQ(parsed->frames, 4608U);
    EXPECT_EQ(parsed->bits, 16U);
    EXPECT_EQ(parsed->bytes, header.size());
    for (std::size_t i = 0; i < header.size() * 8; ++i) {
      if (i / 8 == 2 || i / 8 == 4) continue;  // these bytes set the header's length
      std::string damaged = header;
      damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
      EXPECT_FALSE(parse_flac_header(bytes_of(damaged))) << "bit " << i;
    }
    EXPECT_FALSE(parse_flac_header(bytes_of(header).first(header.size() - 1)));
  }
  const auto with_sizes = [](unsigned sizes, const std::string& more) {
    std::string header("\xFF\xF8\x00\x08\x00", 5);
    header[2] = static_cast<char>(sizes);
    header += more;
    return parse_flac_header(bytes_of(header + static_cast<char>(crc_of(header, 8, 0x107))));
  };
  const std::array<std::uint32_t, 16> blocks{0,   192, 576,  1152, 2304, 4608, 18,    0x1235,
                                             256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  for (unsigned code = 1; code < 16; ++code) {
    const auto header = with_sizes(code << 4U | 5, code == 6 ? "\x11" : code == 7 ? "\x12\x34" : "");
    ASSERT_TRUE(header) << code;
    EXPECT_EQ(header->frames, blocks[code]);
  }
  EXPECT_TRUE(with_sizes(0xCC, "\x10"));       // a rate in kHz
  EXPECT_TRUE(with_sizes(0xCD, "\x3E\x80"));   // in Hz
  EXPECT_FALSE(with_sizes(0x0C, "\x10"));      // a reserved size
  EXPECT_FALSE(with_sizes(0xCF, ""));          // a reserved rate
  EXPECT_FALSE(with_sizes(0x75, "\xFF\xFF"));  // 65,536 samples
}

TEST(FlacFrame, ReportsEveryFlippedBitAndMissingByte) {
  const FlacFrameFixture fixture{.channels = {flac_signal(64, 16)}, .codings = {{.kind = Kind::kFixed, .order = 2}}};
  const std::string frame = fixture.frame();
  const auto header = parse_flac_header(bytes_of(frame));
  ASSERT_TRUE(header);
  FlacFrameDecoder decoder;
  for (std::size_t size = header->bytes; size < frame.size(); ++size) {
    const std::string cut = frame.substr(0, size);
    const auto decoded = decoder.decode(bytes_of(cut), *header, 16, 64);
    ASSERT_TRUE(decoded) << size;
    EXPECT_EQ(*decoded, 0U) << size;
  }
  for (std::size_t i = header->bytes * 8; i < frame.size() * 8; ++i) {
    std::string damaged = frame;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
    const auto decoded = decoder.decode(bytes_of(damaged), *header, 16, 64);
    EXPECT_FALSE(decoded && *decoded > 0) << "bit " << i;
  }
}

TEST(FlacFrame, RefusesReservedValues) {
  const FlacFrameHeader header{.frames = 16, .channels = 1};
  const auto fault = [&](const BitWriter& bits) {
    FlacFrameDecoder decoder;
    const std::string bytes = bits.bytes() + std::string(200, '\x55');
    const auto decoded = decoder.decode_samples(bytes_of(bytes), header, 16, 16);
    return decoded ? std::string("none") : decoded.error().what;
  };
  const auto subframe = [](unsigned head, std::initializer_list<std::pair<unsigned, unsigned>> fields) {
    BitWriter bits;
    bits.write(head, 8);
    for (const auto& [value, width] : fields) bits.write(value, width);
    return bits;
  };
  EXPECT_EQ(fault(subframe(0x02, {})), "none");  // verbatim
  EXPECT_NE(fault(subframe(0x82, {})).find("begin with 0"), std::string::npos);
  for (unsigned kind = 2; kind < 32; ++kind)
    if (kind < 8 || kind > 12) {
      EXPECT_NE(fault(subframe(kind << 1U, {})).find("reserved"), std::string::npos) << kind;
    }
  EXPECT_NE(fault(subframe(0x03, {{1, 16}})).find("no bits"), std::string::npos);
  EXPECT_NE(fault(subframe(0x10, {{2, 2}})).find("method"), std::string::npos);
  EXPECT_NE(fault(subframe(0x10, {{0, 2}, {5, 4}})).find("partitions"), std::string::npos);  // of half a sample
  EXPECT_NE(fault(subframe(0x18, {{0, 32}, {0, 32}, {0, 2}, {3, 4}})).find("partitions"), std::string::npos);
  EXPECT_NE(fault(subframe(0x40, {{0, 16}, {15, 4}, {0, 5}})).find("precision"), std::string::npos);
  EXPECT_NE(fault(subframe(0x40, {{0, 16}, {7, 4}, {31, 5}})).find("shift"), std::string::npos);
  EXPECT_NE(fault(subframe(0x60, {})).find("more coefficients"), std::string::npos);
}

}  // namespace
}  // namespace feedline::decode
