// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/mp3_frames.h"

#include <gtest/gtest.h>

#include <string>

#include "decode/audio/audio_fixture.h"

namespace feedline::decode {
namespace {

// MPEG 2, layer III, 32 kbit/s, 16 kHz, mono: 144 bytes, 576 samples.
const std::string kHead("\xFF\xF3\x48\xC4", 4);
std::string frame(const std::string& content = "") {
  std::string bytes = kHead + content;
  bytes.resize(144, '\0');
  return bytes;
}

std::optional<std::uint64_t> counted(const std::string& file) {
  MemoryBytes source(bytes_of(file));
  const auto count = count_mp3_samples(source);
  EXPECT_TRUE(count);
  return count.value_or(std::nullopt);
}

TEST(Mp3Frames, ParsesHeaders) {
  const auto header = parse_mp3_header(bytes_of(kHead));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->rate, 16000U);
  EXPECT_EQ(header->channels, 1U);
  EXPECT_EQ(header->frame_bytes, 144U);
  EXPECT_EQ(header->frame_samples, 576U);
  const auto stereo = parse_mp3_header(bytes_of(std::string("\xFF\xFB\x92\x00", 4)));  // MPEG 1, 128 kbit/s, padded
  ASSERT_TRUE(stereo);
  EXPECT_EQ(stereo->rate, 44100U);
  EXPECT_EQ(stereo->channels, 2U);
  EXPECT_EQ(stereo->frame_bytes, 418U);
  EXPECT_EQ(stereo->frame_samples, 1152U);
  EXPECT_FALSE(parse_mp3_header(bytes_of(std::string("\xFF\xF1\x48\xC4", 4))));  // AAC
  EXPECT_FALSE(parse_mp3_header(bytes_of(std::string("\xFF\xF3\xF8\xC4", 4))));  // no such bit rate
}

TEST(Mp3Frames, CountsFramesOfDifferentSizes) {
  std::string large = std::string("\xFF\xF3\x88\xC4", 4);  // 64 kbit/s
  large.resize(288, '\0');
  EXPECT_EQ(counted(frame() + large + frame() + large), 4 * 576U);
}

TEST(Mp3Frames, SkipsTagsAndDamage) {
  const std::string tag = std::string("ID3\3\0\0\0\0\0\5", 10) + "abcde";
  EXPECT_EQ(counted(tag + frame() + frame()), 2 * 576U);
  EXPECT_EQ(counted(frame() + frame() + "TAG" + std::string(125, 'x')), 2 * 576U);
  EXPECT_EQ(counted(frame() + frame() + std::string(50, 'x') + frame() + frame()), 4 * 576U);
  EXPECT_EQ(counted(frame() + frame() + frame().substr(0, 100)), 2 * 576U);  // truncated
}

TEST(Mp3Frames, LeavesFilesThatStateTheirLength) {
  EXPECT_EQ(counted(frame(std::string(9, '\0') + "Xing") + frame()), std::nullopt);
  EXPECT_EQ(counted(frame(std::string(9, '\0') + "Info") + frame()), std::nullopt);
  EXPECT_EQ(counted(frame(std::string(32, '\0') + "VBRI") + frame()), std::nullopt);
  EXPECT_EQ(counted("no frames here"), std::nullopt);
}

}  // namespace
}  // namespace feedline::decode
