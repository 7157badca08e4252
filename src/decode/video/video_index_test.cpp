// SPDX-License-Identifier: Apache-2.0
#include "decode/video/video_index.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace feedline::decode {
namespace {

// I0 P3 B1 B2 | I4 P6 B5, with a hidden packet at the end; 25 frames per second in units of 1/50 s from 10 on.
VideoIndex sample_index() {
  VideoIndex index{.file_bytes = 9000, .stream = 1, .codec = "h264", .width = 64, .height = 48};
  index.tag = 0x31637661;
  index.extradata = {std::byte{1}, std::byte{0xff}};
  index.time_den = 50;
  index.orientation = 6;
  const std::int64_t order[] = {0, 3, 1, 2, 4, 6, 5, 7};
  std::uint64_t offset = 500;
  for (const std::int64_t shown : order) {
    const bool is_key = shown == 0 || shown == 4;
    index.packets.push_back({10 + shown * 2, offset, is_key ? 300U : 70U, is_key, shown == 7});
    offset += is_key ? 300 : 90;
  }
  finish_index(index, 2);
  return index;
}

TEST(VideoIndex, IsReadAsItWasWritten) {
  VideoIndex index = sample_index();
  const auto bytes = write_video_index(index);
  EXPECT_LT(bytes.size(), 100);
  const auto read = read_video_index(bytes);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(*read, index);
  index.packets.clear();
  index.has_times = false;
  index.is_sequential = true;
  index.end = -7;
  EXPECT_EQ(read_video_index(write_video_index(index)).value(), index);
}

TEST(VideoIndex, EveryTruncationIsAnError) {
  const auto bytes = write_video_index(sample_index());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_video_index(std::span(bytes).first(size))) << size;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_video_index(longer));
  auto other = bytes;
  other[0] = std::byte{1};
  EXPECT_EQ(read_video_index(other).error().what, "the stored index is of another version");
}

TEST(VideoIndex, CountsTheFramesThatWaitForOthers) { EXPECT_EQ(sample_index().reordered, 1); }

TEST(ShownFrames, AreOrderedByTimeWithoutHiddenPackets) {
  const VideoIndex index = sample_index();
  const ShownFrames frames(index);
  ASSERT_EQ(frames.count(), 7);
  const std::uint32_t packets[] = {0, 2, 3, 1, 4, 6, 5};
  for (std::uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(frames.packet(i), packets[i]);
    EXPECT_DOUBLE_EQ(frames.time(i), 0.04 * static_cast<double>(i));
  }
  EXPECT_DOUBLE_EQ(frames.duration(), 0.28);
  EXPECT_DOUBLE_EQ(frames.end(2), 0.12);
  EXPECT_DOUBLE_EQ(frames.end(6), 0.28);
}

TEST(ShownFrames, LastUntilTheNextOne) {
  const VideoIndex index = sample_index();
  const ShownFrames frames(index);
  EXPECT_EQ(frames.at(0), 0);
  EXPECT_EQ(frames.at(0.0399), 0);
  EXPECT_EQ(frames.at(0.04), 1);
  EXPECT_EQ(frames.at(0.12), 3);  // 0.12 * 50 is less than 6
  EXPECT_EQ(frames.at(0.2799), 6);
  EXPECT_EQ(frames.at(0.28), std::nullopt);
  EXPECT_EQ(frames.at(-0.01), std::nullopt);
}

}  // namespace
}  // namespace feedline::decode
