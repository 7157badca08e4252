// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/video_decoders.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace feedline::pipeline {
namespace {

decode::VideoIndex video(int width, int height) {
  decode::VideoIndex index;
  index.width = width;
  index.height = height;
  return index;
}

TEST(VideoDecoders, AtMostAsManyAreOpenAsTheBudgetAllows) {
  const auto index = video(64, 48);
  VideoDecoders decoders(2 * decoder_bytes(index));
  std::atomic<int> open = 0, most = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      for (int clip = 0; clip < 50; ++clip) {
        const auto reserved = decoders.reserve(index);
        ASSERT_TRUE(reserved);
        const int now = ++open;
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
        std::this_thread::yield();
        --open;
      }
    });
  threads.clear();
  EXPECT_LE(most, 2);
  EXPECT_LE(decoders.stats().decoder_bytes_peak, 2 * decoder_bytes(index));
}

TEST(VideoDecoders, ALargerDecoderThanAGivenBudgetIsAnError) {
  VideoDecoders small(decoder_bytes(video(64, 48)));
  const auto refused = small.reserve(video(64, 50));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_TRUE(small.reserve(video(64, 48)));
}

TEST(VideoDecoders, OneDecoderOfAnySizeIsOpenWithoutAGivenBudget) {
  VideoDecoders usual(0);
  EXPECT_TRUE(usual.reserve(video(1 << 14, 1 << 14)));
  EXPECT_TRUE(usual.reserve(video(1 << 14, 1 << 14)));  // the first one was released
}

}  // namespace
}  // namespace feedline::pipeline
