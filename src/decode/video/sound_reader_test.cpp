// SPDX-License-Identifier: Apache-2.0
#include "decode/video/sound_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "decode/video/video_fixture.h"

namespace feedline::decode {
namespace {

class SoundReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!VideoFiles::can_make()) GTEST_SKIP() << "the ffmpeg program is not installed";
    if (!ffmpeg_library()) GTEST_SKIP() << ffmpeg_library().error().what;
    file_ = files_.make("a.mkv",
                        "-f lavfi -i testsrc2=size=32x32:rate=25:duration=3 -f lavfi -i sine=duration=3 -c:v libx264 "
                        "-c:a aac OUT");
    ASSERT_FALSE(file_.empty());
  }

  VideoFiles files_;
  std::vector<std::byte> file_;
};

TEST_F(SoundReaderTest, AStoredTrackEqualsTheScannedOne) {
  const VideoInMemory source(file_);
  const auto scanned = scan_sound(*ffmpeg_library(), source, 0);
  ASSERT_TRUE(scanned) << scanned.error().what;
  const auto bytes = write_sound_track(*scanned);
  const auto stored = read_sound_track(bytes);
  ASSERT_TRUE(stored) << stored.error().what;
  EXPECT_EQ(stored->stream, scanned->stream);
  EXPECT_EQ(stored->rate, 44100U);
  EXPECT_EQ(stored->channels, 1U);
  EXPECT_EQ(stored->start, scanned->start);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_sound_track(std::span(bytes).first(size)));
}

TEST_F(SoundReaderTest, PartsEqualTheWhole) {
  const VideoInMemory source(file_);
  auto scanned = scan_sound(*ffmpeg_library(), source, 0);
  ASSERT_TRUE(scanned) << scanned.error().what;
  const auto track = std::make_shared<const SoundTrack>(*std::move(scanned));
  SoundReader reader(*ffmpeg_library(), track, source);
  std::vector<float> whole(reader.info().frames);
  ASSERT_TRUE(reader.read(0, std::span(whole)));
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1023}, std::uint64_t{70'000}}) {
    std::vector<float> part(5000);
    ASSERT_TRUE(reader.read(begin, std::span(part)));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
}

TEST_F(SoundReaderTest, ATruncatedFileIsAnErrorWithItsTime) {
  const VideoInMemory source(file_);
  auto scanned = scan_sound(*ffmpeg_library(), source, 0);
  ASSERT_TRUE(scanned) << scanned.error().what;
  const auto track = std::make_shared<const SoundTrack>(*std::move(scanned));
  const VideoInMemory truncated{std::span(file_).first(file_.size() / 2)};
  SoundReader reader(*ffmpeg_library(), track, truncated);
  std::vector<float> part(4410);
  const auto read = reader.read(44100 * 5 / 2, std::span(part));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kData);
  EXPECT_NE(read.error().what.find("the sound at 2.500 s of stream 1: the file ends at byte"), std::string::npos)
      << read.error().what;
}

}  // namespace
}  // namespace feedline::decode
