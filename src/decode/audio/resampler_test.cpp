// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/resampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "decode/audio/soxr_library.h"

namespace feedline::decode {
namespace {

TEST(Resampler, RoundsLengthsToTheNearest) {
  EXPECT_EQ(resampled_frames(44100, 44100, 16000), 16000U);
  EXPECT_EQ(resampled_frames(1, 48000, 16000), 0U);  // 1/3
  EXPECT_EQ(resampled_frames(2, 48000, 16000), 1U);  // 2/3
  EXPECT_EQ(resampled_frames(std::uint64_t{1} << 50, 44100, 48000), 1225469286359319U);
}

TEST(Resampler, PartsBeginAtCommonTimes) {
  for (const std::uint64_t begin : {0U, 1U, 5000U, 31999U}) {
    const ResampledPart part = part_needed(begin, 100, 88200, 44100, 16000);
    EXPECT_EQ(part.begin % 441, 0U);
    EXPECT_EQ(part.begin * 160 / 441 + part.skipped, begin);
    EXPECT_LE(part.end, 88200U);
  }
}

TEST(Resampler, PartsEqualSlicesOfTheWhole) {
  if (!soxr_library()) GTEST_SKIP() << soxr_library().error().what;
  struct Rates {
    std::uint32_t from, to;
  };
  for (const auto& [from, to] : {Rates{44100, 16000}, Rates{16000, 44100}, Rates{8000, 16000}, Rates{16001, 16000}}) {
    const std::uint64_t frames = std::uint64_t{from} * 2 + 37;
    std::vector<float> in(frames * 2), room;
    for (std::uint64_t i = 0; i < frames; ++i) {
      in[2 * i] = static_cast<float>(0.4 * std::sin(0.01 * static_cast<double>(i * i % 100'000)));
      in[2 * i + 1] = i % 777 == 0 ? 0.9F : 0.0F;
    }
    const std::uint64_t all = resampled_frames(frames, from, to);
    std::vector<float> whole(all * 2);
    ASSERT_TRUE(resample(in, 2, from, to, 0, whole, room));
    for (const std::uint64_t begin : {std::uint64_t{0}, all / 3, all - 400}) {
      const ResampledPart part = part_needed(begin, 400, frames, from, to);
      std::vector<float> out(800);
      ASSERT_TRUE(resample(std::span(in).subspan(part.begin * 2, (part.end - part.begin) * 2), 2, from, to,
                           part.skipped, out, room));
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], whole[begin * 2 + i], 2e-6) << from << " to " << to << ", " << begin << " + " << i / 2;
    }
  }
}

TEST(Resampler, KeepsTonesAndSuppressesAliases) {
  if (!soxr_library()) GTEST_SKIP() << soxr_library().error().what;
  const auto level_of = [](double hertz) {
    std::vector<float> in(48000), out(16000), room;
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<float>(std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / 48000));
    EXPECT_TRUE(resample(in, 1, 48000, 16000, 0, out, room));
    double worst = 0;  // of the difference to the tone, without the edges
    for (std::size_t i = 2000; i < 14000; ++i)
      worst = std::max(
          worst,
          std::abs(out[i] -
                   (hertz < 8000 ? std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / 16000) : 0)));
    return 20 * std::log10(worst);
  };
  EXPECT_LT(level_of(1000), -60);
  EXPECT_LT(level_of(6500), -60);
  EXPECT_LT(level_of(9500), -70);
  EXPECT_LT(level_of(15000), -70);
}

}  // namespace
}  // namespace feedline::decode
