// SPDX-License-Identifier: Apache-2.0

// Decoding a region from only the restart intervals that it touches must produce the same pixels as a full decode.

#include "decode/jpeg/restart_scan.h"

#include <random>

#include "base/rounds.h"
#include "decode/jpeg/baseline/baseline_fixture.h"

namespace feedline::decode::baseline {
namespace {

class RestartScan : public testing::TestWithParam<const Kernels*> {
 protected:
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::mt19937 random_{20261121};
};

TEST_P(RestartScan, FindsWhatALookAtEachByteFinds) {
  int found = 0;
  for (int round = 0; round < base::rounds(4000); ++round) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(number(0, 400)));
    for (auto& byte : bytes) {
      constexpr std::uint8_t kPicked[] = {0, 0, 0xFF, 0xFF, 0xFE, 1};
      byte = number(0, 9) < 3 ? kPicked[number(0, 5)] : static_cast<std::uint8_t>(number(2, 0xCF));
    }
    // mostly markers in the right order
    int next = number(0, 7);
    const int first = next;
    for (std::size_t at = static_cast<std::size_t>(number(0, 60)); at + 1 < bytes.size(); at += 2 + number(0, 90)) {
      bytes[at] = 0xFF;
      bytes[at + 1] = static_cast<std::uint8_t>(0xD0 + next);
      next = (next + 1) % 8;
    }
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i)  // random data should rarely form a marker
      if (bytes[i] == 0xFF && bytes[i + 1] < 0xD0 && number(0, 500) != 0) bytes[i + 1] = 0;
    const std::uint8_t *from = bytes.data(), *end = from + bytes.size();
    for (const int count : {1, 2, 3, 7}) {
      const auto* const expected = pass_restarts_bytewise(from, end, first, count);
      ASSERT_EQ(GetParam()->pass_restarts(from, end, first, count), expected) << "round " << round;
      found += expected != nullptr;
    }
  }
  EXPECT_GT(found, base::rounds(1000));
}

TEST_P(RestartScan, RegionsOfImagesOfAnyKindHaveLibjpegsPixels) {
  BaselineDecoder ours(*GetParam());
  JpegDecoder theirs(nullptr);
  int passed = 0;
  for (int round = 0; round < base::rounds(150, 5); ++round) {
    const bool grey = number(0, 4) == 0;
    const int h = grey ? 1 : number(1, 2);
    const JpegKind kind{.width = number(6, 260),
                        .height = number(1, 200),
                        .channels = grey ? 1 : 3,
                        .h = h,
                        .v = number(1, h),
                        .restart = number(0, 3) == 0 ? number(1, 300) : number(1, 9),
                        .quality = number(5, 100),
                        .optimised = number(0, 1) == 1};
    const EncodedBytes bytes = encode(kind);
    const ReadHeader header(bytes);
    const auto frame = header.frame();
    ASSERT_TRUE(frame);
    const Decoded whole = decoded_by(theirs, bytes, {0, 0, kind.width, kind.height}, ColorMode::kRgb);
    for (int i = 0; i < 12; ++i) {
      const int width = number(1, kind.width), height = number(1, kind.height);
      const Box region{number(0, kind.width - width), number(0, kind.height - height), width, height};
      ASSERT_EQ(decoded_by(ours, *frame, region, ColorMode::kRgb), cropped(whole.pixels, kind.width, region, 3))
          << kind.width << " x " << kind.height << ", " << h << " x " << kind.v << ", interval " << kind.restart
          << ", at " << region.left << ", " << region.top << " of " << width << " x " << height;
      passed += ours.intervals_passed();
    }
  }
  EXPECT_GT(passed, base::rounds(10000, 5));  // or the test would prove nothing
}

INSTANTIATE_TEST_SUITE_P(All, RestartScan, testing::ValuesIn(all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

EncodedBytes image() { return encode({.width = 320, .height = 320, .restart = 4}); }

TEST(RestartRegions, ReadOnlyTheIntervalsThatTheyTouch) {
  JpegDecoder decoder;
  const EncodedBytes bytes = image();
  ASSERT_EQ(decoded_by(decoder, bytes, {100, 100, 32, 32}, ColorMode::kRgb).error, "");
  ASSERT_TRUE(decoder.used_baseline());
  // 20 MCUs per row form 5 intervals. The region depends on MCUs 6 to 8 of rows 6 to 8, which are in two intervals per
  // row; libjpeg would read 9 rows. All other intervals except the first and the last are skipped.
  EXPECT_EQ(decoder.intervals_passed(), 9 * 5 - 3 * 2 - 2);
  ASSERT_EQ(decoded_by(decoder, bytes, {0, 0, 320, 320}, ColorMode::kRgb).error, "");
  EXPECT_EQ(decoder.intervals_passed(), 0);
}

std::size_t marker_at(const EncodedBytes& bytes, int number) {
  std::size_t at = 0;
  for (int left = number + 1; left > 0; left -= bytes[at] == std::byte{0xFF} && (bytes[at + 1] >> 3) == std::byte{0x1A})
    ++at;
  return at;
}

TEST(RestartRegions, AreNotDecodedFromAFileThatLacksAnInterval) {
  JpegDecoder ours, theirs(nullptr);
  const Box region{100, 100, 32, 32};
  const EncodedBytes good = image();
  const auto expected = decoded_by(theirs, good, region, ColorMode::kRgb);
  for (const int missing : {1, 7, 20, 33}) {  // before, above and inside the region
    EncodedBytes bytes = good;
    const auto at = [&](int marker) { return bytes.begin() + static_cast<std::ptrdiff_t>(marker_at(bytes, marker)); };
    bytes.erase(at(missing), at(missing + 1));
    const Decoded decoded = decoded_by(ours, bytes, region, ColorMode::kRgb);
    EXPECT_EQ(decoded.error, decoded_by(theirs, bytes, region, ColorMode::kRgb).error);
    EXPECT_NE(decoded.error, "");
  }
  // damage in an interval outside the region must not change any pixel
  EncodedBytes bytes = good;
  const auto inside = static_cast<std::ptrdiff_t>(marker_at(good, 12) + 2);
  std::fill_n(bytes.begin() + inside, 20, std::byte{0x55});
  EXPECT_TRUE(decoded_by(ours, bytes, region, ColorMode::kRgb) == expected);
}

// Each interval is read to its end, even outside the region, to detect truncated data that would produce wrong pixels.
TEST(RestartRegions, JudgeEveryIntervalThatTheyUse) {
  JpegDecoder ours, theirs(nullptr);
  const Box region{100, 100, 32, 32};
  const EncodedBytes good = image();
  const int used = 7 * 5 + 1;  // its second row of MCUs, on the left
  const auto from = static_cast<std::ptrdiff_t>(marker_at(good, used - 1)) + 2;
  const auto to = static_cast<std::ptrdiff_t>(marker_at(good, used));
  for (std::ptrdiff_t cut = 1; cut < to - from; ++cut) {
    EncodedBytes bytes = good;
    bytes.erase(bytes.begin() + to - cut, bytes.begin() + to);
    const Decoded mine = decoded_by(ours, bytes, region, ColorMode::kRgb);
    EXPECT_TRUE(mine == decoded_by(theirs, bytes, region, ColorMode::kRgb)) << cut;
  }
}

}  // namespace
}  // namespace feedline::decode::baseline
