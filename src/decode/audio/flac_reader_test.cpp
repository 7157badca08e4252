// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "decode/audio/audio_fixture.h"

namespace feedline::decode {
namespace {

constexpr std::uint64_t kBlock = 4096;

unsigned crc8(const std::string& bytes) {
  unsigned crc = 0;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x80U) != 0 ? (crc << 1U) ^ 0x107U : crc << 1U;
  }
  return crc & 0xFFU;
}

// A frame header of 16 kHz mono, 16 bits, blocks of 4096, followed by bytes that are no frame.
std::string frame(unsigned index, std::size_t bytes) {
  std::string head("\xFF\xF8\xC5\x08", 4);
  if (index < 0x80) {
    head += static_cast<char>(index);
  } else {
    head += static_cast<char>(0xC0U | index >> 6U);
    head += static_cast<char>(0x80U | (index & 0x3FU));
  }
  head += static_cast<char>(crc8(head));
  head.resize(bytes, '\x55');
  return head;
}

std::string flac(const std::string& frames, std::uint64_t samples, const std::string& more_metadata = "") {
  std::string info = number_bytes(kBlock, 2, true) + number_bytes(kBlock, 2, true) + number_bytes(0, 6);
  // 20 bits of rate, 3 of channels, 5 of bits, 36 of samples
  info += number_bytes(std::uint64_t{16000} << 44 | std::uint64_t{15} << 36 | samples, 8, true) + std::string(16, '\0');
  const char last = more_metadata.empty() ? '\x80' : '\0';
  std::string file = std::string("fLaC") + last + number_bytes(34, 3, true) + info;
  if (!more_metadata.empty()) file += '\x84' + number_bytes(more_metadata.size(), 3, true) + more_metadata;
  return file + frames;
}

TEST(FlacReader, ReadsTheHeader) {
  const std::string file = flac(frame(0, 100), 5000, "a comment");
  MemoryBytes source(bytes_of(file));
  const auto stream = read_flac_header(source);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->rate, 16000U);
  EXPECT_EQ(stream->channels, 1U);
  EXPECT_EQ(stream->frames, 5000U);
  EXPECT_EQ(stream->block_frames, kBlock);
  EXPECT_EQ(stream->data_at, file.size() - 100);
}

TEST(FlacReader, RefusesDamagedHeaders) {
  const std::string file = flac(frame(0, 100), 5000);
  for (const std::size_t bytes : {4U, 7U, 20U, 42U}) {
    const std::string cut = file.substr(0, bytes);
    MemoryBytes source(bytes_of(cut));
    EXPECT_FALSE(read_flac_header(source)) << bytes;
  }
}

TEST(FlacReader, FindsTheFrameOfEachSample) {
  std::string frames;
  std::vector<std::uint64_t> begins;
  constexpr unsigned kFrames = 300;
  for (unsigned i = 0; i < kFrames; ++i) {
    begins.push_back(frames.size());
    frames += frame(i, 200 + (i * 7919 % 3000) + (i > 150 ? 2000 : 0));  // sizes differ much
  }
  const std::string file = flac(frames, kFrames * kBlock);
  MemoryBytes source(bytes_of(file));
  const auto stream = read_flac_header(source);
  ASSERT_TRUE(stream);
  for (std::uint64_t sample = 0; sample < kFrames * kBlock; sample += 1777) {
    const auto found = find_flac_frame(source, *stream, sample);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->frame % kBlock, 0U);
    EXPECT_EQ(found->at, stream->data_at + begins[found->frame / kBlock]);
    EXPECT_LE(found->frame, sample);
    EXPECT_LE(sample - found->frame, 3 * kBlock);
  }
}

TEST(FlacReader, TakesTheFirstFrameIfNoneIsFound) {
  const std::string file = flac(frame(0, 100) + std::string(50'000, '\x55'), 100 * kBlock);
  MemoryBytes source(bytes_of(file));
  const auto stream = read_flac_header(source);
  ASSERT_TRUE(stream);
  const auto found = find_flac_frame(source, *stream, 50 * kBlock);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at, stream->data_at);
  EXPECT_EQ(found->frame, 0U);
}

}  // namespace
}  // namespace feedline::decode
