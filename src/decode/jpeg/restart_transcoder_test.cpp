// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/restart_transcoder.h"

#include <random>

#include "decode/jpeg/baseline/baseline_fixture.h"

namespace feedline::decode {
namespace {

using baseline::Decoded;
using baseline::decoded_by;

// Returns nullopt if the image is not changed.
std::optional<EncodedBytes> rewritten(const EncodedBytes& bytes, int interval) {
  auto result = with_restarts(bytes, interval);
  EXPECT_TRUE(result) << result.error().what;
  return result ? std::move(*result) : std::nullopt;
}

int restart_interval_of(const EncodedBytes& bytes) { return baseline::ReadHeader(bytes).frame()->restart_interval; }

TEST(RestartTranscoder, KeepsEveryPixelOfEveryKindThatGains) {
  std::mt19937 random(5);
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  JpegDecoder libjpeg(nullptr), ours;
  for (int round = 0; round < 120; ++round) {
    const bool grey = number(0, 4) == 0;
    const int h = grey ? 1 : number(1, 2);
    const JpegKind kind{.width = number(6, 150),
                        .height = number(1, 150),
                        .channels = grey ? 1 : 3,
                        .h = h,
                        .v = number(1, h),
                        .restart = number(0, 2) == 0 ? number(1, 9) : 0,
                        .quality = number(5, 100),
                        .optimised = number(0, 1) == 1};
    const EncodedBytes bytes = encode(kind);
    const int interval = number(1, 12);
    const auto out = rewritten(bytes, interval);
    ASSERT_TRUE(out) << round;
    EXPECT_EQ(restart_interval_of(*out), interval);
    const Box all{0, 0, kind.width, kind.height};
    const Decoded expected = decoded_by(libjpeg, bytes, all, ColorMode::kRgb);
    ASSERT_TRUE(decoded_by(libjpeg, *out, all, ColorMode::kRgb) == expected) << round;
    ASSERT_TRUE(decoded_by(ours, *out, all, ColorMode::kRgb) == expected) << round;
    EXPECT_TRUE(ours.used_baseline());
  }
}

// Expects the same segments in the same order, except for one DRI.
TEST(RestartTranscoder, KeepsTheHeaderAndWhatFollowsTheImage) {
  EncodedBytes bytes = encode({.width = 100, .height = 70, .restart = 3});
  const auto put = [](EncodedBytes& to, std::size_t at, std::initializer_list<int> values) {
    EncodedBytes inserted;
    for (const int value : values) inserted.push_back(static_cast<std::byte>(value));
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(at), inserted.begin(), inserted.end());
  };
  put(bytes, 2, {0xFF, 0xE1, 0, 8, 'E', 'x', 'i', 'f', 0, 0});  // before JFIF, as written by some cameras
  put(bytes, bytes.size(), {1, 2, 3});
  const auto out = rewritten(bytes, 300);
  ASSERT_TRUE(out);
  const auto find = [](const EncodedBytes& in, int marker) {
    const std::array wanted{std::byte{0xFF}, static_cast<std::byte>(marker)};
    return std::ranges::search(in, wanted).begin() - in.begin();
  };
  constexpr int kDri = 0xDD, kSos = 0xDA, kSegment = 6, kScanHeader = 14;
  EncodedBytes header(bytes.begin(), bytes.begin() + find(bytes, kSos));
  header.erase(header.begin() + find(bytes, kDri), header.begin() + find(bytes, kDri) + kSegment);
  put(header, header.size(), {0xFF, kDri, 0, 4, 300 >> 8, 300 & 255});
  header.insert(header.end(), bytes.begin() + find(bytes, kSos), bytes.begin() + find(bytes, kSos) + kScanHeader);
  EXPECT_TRUE(std::equal(header.begin(), header.end(), out->begin()));
  EXPECT_TRUE(std::equal(bytes.end() - 5, bytes.end(), out->end() - 5));  // EOI and the three bytes
  // without a marker inside the image, the data equals that of an image without markers
  const EncodedBytes plain = encode({.width = 100, .height = 70});
  EXPECT_TRUE(
      std::equal(plain.begin() + find(plain, kSos), plain.end(), out->begin() + find(*out, kSos), out->end() - 3));
}

TEST(RestartTranscoder, IsTheSameAgain) {
  const EncodedBytes bytes = encode({.width = 200, .height = 100, .optimised = true});
  const auto once = rewritten(bytes, 5);
  ASSERT_TRUE(once);
  EXPECT_EQ(rewritten(*once, 5), once);
}

TEST(RestartTranscoder, LeavesWhatGainsNothing) {
  const JpegKind others[] = {
      {.name = "progressive", .progressive = true},
      {.name = "arithmetic", .arithmetic = true},
      {.name = "separate scans", .interleaved = false},
      {.name = "1x2", .h = 1, .v = 2},
      {.name = "CMYK", .channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK},
  };
  for (const JpegKind& kind : others) EXPECT_FALSE(rewritten(encode(kind), 5)) << kind.name;
  EXPECT_FALSE(rewritten({}, 5));
  EXPECT_FALSE(rewritten(EncodedBytes(100, std::byte{'x'}), 5));
}

TEST(RestartTranscoder, ChoosesByTheImagesSize) {
  EXPECT_FALSE(rewritten(encode({.width = 100, .height = 100}), kRestartIntervalBySize));
  const auto large = rewritten(encode({.width = 500, .height = 375}), kRestartIntervalBySize);
  ASSERT_TRUE(large);
  EXPECT_EQ(restart_interval_of(*large), restart_interval_for(500, 375));
}

TEST(RestartTranscoder, SaysWhatIsDamaged) {
  const EncodedBytes good = encode({.width = 200, .height = 100});
  for (const std::size_t bytes : {good.size() / 2, good.size() - 40, std::size_t{200}, std::size_t{30}}) {
    const auto result = with_restarts(std::span(good).first(bytes), 5);
    ASSERT_FALSE(result) << bytes;
    EXPECT_EQ(result.error().code, ErrorCode::kData);
  }
  // all pixels are present
  const auto whole = with_restarts(std::span(good).first(good.size() - 2), 5);
  ASSERT_TRUE(whole && *whole);
  EXPECT_EQ(std::vector((*whole)->end() - 2, (*whole)->end()), std::vector(good.end() - 2, good.end()));
}

// Arbitrary input must not cause crashes, and the output must have the same pixels as the input.
TEST(RestartTranscoder, StaysRightUnderFlippedBytes) {
  std::mt19937 random(3);
  const EncodedBytes good = encode({.width = 61, .height = 57, .optimised = true});
  JpegDecoder libjpeg(nullptr);
  int written = 0;
  for (int round = 0; round < 1500; ++round) {
    EncodedBytes bytes = good;
    for (unsigned i = 0; i < 1 + random() % 3; ++i)
      bytes[2 + random() % (bytes.size() - 2)] = static_cast<std::byte>(random());
    JpegDecoder opened;
    const auto header = opened.open(bytes);
    if (!header || header->width * header->height > 1 << 20) continue;
    const auto out = with_restarts(bytes, 1 + static_cast<int>(random() % 5));
    if (!out || !*out) continue;
    ++written;
    const Box all{0, 0, header->width, header->height};
    ASSERT_TRUE(decoded_by(libjpeg, **out, all, ColorMode::kRgb) == decoded_by(libjpeg, bytes, all, ColorMode::kRgb))
        << round;
  }
  EXPECT_GT(written, 100);
}

}  // namespace
}  // namespace feedline::decode
