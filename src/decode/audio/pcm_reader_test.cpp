// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/pcm_reader.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "decode/audio/audio_fixture.h"
#include "decode/audio/audio_reader.h"

namespace feedline::decode {
namespace {

std::vector<float> floats_of(const std::string& file) {
  MemoryBytes source(bytes_of(file));
  auto reader = open_audio(source);
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().message());
  if (!reader) return {};
  std::vector<float> samples((*reader)->info().frames * (*reader)->info().channels);
  EXPECT_TRUE((*reader)->read(0, std::span(samples)));
  return samples;
}

std::vector<std::int16_t> integers_of(const std::string& file) {
  MemoryBytes source(bytes_of(file));
  auto reader = open_audio(source);
  EXPECT_TRUE(reader);
  if (!reader) return {};
  std::vector<std::int16_t> samples((*reader)->info().frames * (*reader)->info().channels);
  EXPECT_TRUE((*reader)->read(0, std::span(samples)));
  return samples;
}

std::string error_of(const std::string& file) {
  MemoryBytes source(bytes_of(file));
  const auto reader = open_audio(source);
  return reader ? "" : reader.error().what;
}

using Floats = std::vector<float>;

TEST(PcmReader, ScalesIntegersByTheirFullScale) {
  EXPECT_EQ(floats_of(WavFixture{.data = samples_16({0, 1, -32768, 32767})}.file()),
            (Floats{0, 1 / 32768.0F, -1, 32767 / 32768.0F}));
  EXPECT_EQ(floats_of(WavFixture{.bits = 8, .data = std::string("\x80\x00\xFF\x81", 4)}.file()),
            (Floats{0, -1, 127 / 128.0F, 1 / 128.0F}));
  EXPECT_EQ(floats_of(WavFixture{.bits = 24, .data = std::string("\x01\0\0\0\0\x80", 6)}.file()),
            (Floats{1 / 8388608.0F, -1}));
  EXPECT_EQ(floats_of(WavFixture{.bits = 32, .data = std::string("\0\0\0\x40\0\0\0\x80", 8)}.file()),
            (Floats{0.5F, -1}));
}

TEST(PcmReader, DropsLowBitsForInt16) {
  EXPECT_EQ(integers_of(WavFixture{.bits = 24, .data = std::string("\xFF\x34\x12\0\0\x80", 6)}.file()),
            (std::vector<std::int16_t>{0x1234, -32768}));
  EXPECT_EQ(integers_of(WavFixture{.bits = 8, .data = std::string("\x80\x81", 2)}.file()),
            (std::vector<std::int16_t>{0, 256}));
}

TEST(PcmReader, DoesNotClipFloats) {
  const std::string data =
      number_bytes(std::bit_cast<std::uint32_t>(1.5F), 4) + number_bytes(std::bit_cast<std::uint32_t>(-0.25F), 4);
  EXPECT_EQ(floats_of(WavFixture{.code = 3, .bits = 32, .data = data}.file()), (Floats{1.5F, -0.25F}));
  EXPECT_EQ(integers_of(WavFixture{.code = 3, .bits = 32, .data = data}.file()),
            (std::vector<std::int16_t>{32767, -8192}));
  const std::string doubles = number_bytes(std::bit_cast<std::uint64_t>(-2.5), 8);
  EXPECT_EQ(floats_of(WavFixture{.code = 3, .bits = 64, .data = doubles}.file()), (Floats{-2.5F}));
}

TEST(PcmReader, ReadsFloatsInExtensibleFiles) {
  const std::string data = number_bytes(std::bit_cast<std::uint32_t>(0.75F), 4);
  EXPECT_EQ(floats_of(WavFixture{.code = 3, .bits = 32, .data = data, .is_extensible = true}.file()), (Floats{0.75F}));
  EXPECT_EQ(floats_of(WavFixture{.data = samples_16({16384}), .is_extensible = true}.file()), (Floats{0.5F}));
}

TEST(PcmReader, ReadsCompandedSamples) {
  // G.711: the largest codes, and those nearest to zero
  EXPECT_EQ(integers_of(WavFixture{.code = 7, .bits = 8, .data = std::string("\x00\x80\xFF\x7F", 4)}.file()),
            (std::vector<std::int16_t>{-32124, 32124, 0, 0}));
  EXPECT_EQ(integers_of(WavFixture{.code = 6, .bits = 8, .data = std::string("\x2A\xAA\xD5\x55", 4)}.file()),
            (std::vector<std::int16_t>{-32256, 32256, 8, -8}));
}

TEST(PcmReader, ReadsToTheEndIfTheSizeIsUnknown) {
  const std::string data = samples_16({1, 2, 3});
  for (const std::int64_t stated : {std::int64_t{0}, std::int64_t{0xFFFFFFFF}, std::int64_t{0x7FFFF000}})
    EXPECT_EQ(floats_of(WavFixture{.data = data, .stated_bytes = stated}.file()).size(), 3U) << stated;
  // the last frame is incomplete
  EXPECT_EQ(floats_of(WavFixture{.data = data + "x", .stated_bytes = 0xFFFFFFFF}.file()).size(), 3U);
}

TEST(PcmReader, AnEmptyDataChunkIsNotFollowedBySamples) {
  const std::string list = "LIST" + number_bytes(4, 4) + "INFO";
  EXPECT_EQ(error_of(WavFixture{.after_data = list}.file()), "WAV: the file has no samples");
}

TEST(PcmReader, TakesTheSizeOfRf64) {
  const std::string data = samples_16({5, 6, 7});
  const std::string sizes = number_bytes(0, 8) + number_bytes(4, 8) + number_bytes(2, 8) + number_bytes(0, 4);
  WavFixture file{.data = data, .stated_bytes = 0xFFFFFFFF, .riff = "RF64"};
  file.before_data = "ds64" + number_bytes(sizes.size(), 4) + sizes;
  EXPECT_EQ(floats_of(file.file()).size(), 2U);
  file.riff = "BW64";
  EXPECT_EQ(floats_of(file.file()).size(), 2U);
}

TEST(PcmReader, RefusesFilesShorterThanTheirHeader) {
  EXPECT_EQ(error_of(WavFixture{.data = samples_16({1, 2}), .stated_bytes = 8}.file()),
            "WAV: truncated: the header states 4 frames, but the file has 2");
}

TEST(PcmReader, RefusesDamagedHeaders) {
  EXPECT_NE(error_of(WavFixture{.channels = 0, .data = "ab"}.file()).find("0 channels"), std::string::npos);
  EXPECT_NE(error_of(WavFixture{.rate = 0, .data = "ab"}.file()).find("0 Hz"), std::string::npos);
  EXPECT_NE(error_of(WavFixture{.bits = 40, .data = "abcde"}.file()).find("40 bits"), std::string::npos);
  EXPECT_NE(error_of(WavFixture{.code = 3, .bits = 16, .data = "ab"}.file()).find("16 bits"), std::string::npos);
  const std::string whole = WavFixture{.data = "ab"}.file();
  EXPECT_EQ(error_of(whole.substr(0, 20)), "WAV: the fmt chunk has fewer than 16 bytes");
  EXPECT_EQ(error_of(whole.substr(0, 36)), "WAV: truncated: the data chunk is missing");
  EXPECT_EQ(error_of(""), "an empty file");
  EXPECT_NE(error_of("hello, this is text").find("not an audio file"), std::string::npos);
  EXPECT_NE(error_of("\x30\x26\xB2\x75").find("WMA is not supported"), std::string::npos);
}

TEST(PcmReader, ReadsPartsOfChannels) {
  const std::string file = WavFixture{.channels = 2, .data = samples_16({1, 2, 3, 4, 5, 6})}.file();
  MemoryBytes source(bytes_of(file));
  const auto reader = open_audio(source);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->info().frames, 3U);
  EXPECT_EQ((*reader)->info().rate, 16000U);
  std::vector<std::int16_t> samples(4);
  ASSERT_TRUE((*reader)->read(1, std::span(samples)));
  EXPECT_EQ(samples, (std::vector<std::int16_t>{3, 4, 5, 6}));
}

std::string aiff(const std::string& type, std::uint32_t bits, const std::string& data, std::uint32_t frames,
                 bool is_aifc) {
  // 16000 = 0xFA00 * 2^-2: exponent 16383 + 13
  const std::string rate = std::string("\x40\x0C\xFA\0\0\0\0\0\0\0", 10);
  std::string common = number_bytes(1, 2, true) + number_bytes(frames, 4, true) + number_bytes(bits, 2, true) + rate;
  if (is_aifc) common += type + std::string("\0\0", 2);
  const std::string body = std::string(is_aifc ? "AIFC" : "AIFF") + "COMM" + number_bytes(common.size(), 4, true) +
                           common + "SSND" + number_bytes(data.size() + 8, 4, true) + number_bytes(0, 8) + data;
  return "FORM" + number_bytes(body.size(), 4, true) + body;
}

TEST(PcmReader, ReadsAiff) {
  EXPECT_EQ(floats_of(aiff("", 16, samples_16({16384, -32768}, true), 2, false)), (Floats{0.5F, -1}));
  EXPECT_EQ(floats_of(aiff("", 8, "\x40\x80", 2, false)), (Floats{0.5F, -1}));
  EXPECT_EQ(floats_of(aiff("sowt", 16, samples_16({16384}), 1, true)), (Floats{0.5F}));
  EXPECT_EQ(floats_of(aiff("fl32", 32, number_bytes(std::bit_cast<std::uint32_t>(1.5F), 4, true), 1, true)),
            (Floats{1.5F}));
  EXPECT_EQ(error_of(aiff("", 16, samples_16({1}, true), 2, false)),
            "AIFF: truncated: the header states 2 frames, but the file has 1");
}

TEST(PcmReader, ReadsAu) {
  const auto au = [](std::uint32_t code, std::uint32_t bytes, const std::string& data) {
    return ".snd" + number_bytes(24, 4, true) + number_bytes(bytes, 4, true) + number_bytes(code, 4, true) +
           number_bytes(8000, 4, true) + number_bytes(1, 4, true) + data;
  };
  EXPECT_EQ(floats_of(au(3, 4, samples_16({16384, -32768}, true))), (Floats{0.5F, -1}));
  EXPECT_EQ(floats_of(au(3, 0xFFFFFFFF, samples_16({16384}, true))), (Floats{0.5F}));
  EXPECT_EQ(integers_of(au(1, 1, std::string("\x80"))), (std::vector<std::int16_t>{32124}));
}

}  // namespace
}  // namespace feedline::decode
