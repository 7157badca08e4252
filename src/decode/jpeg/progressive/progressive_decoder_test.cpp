// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/progressive/progressive_decoder.h"

#include <algorithm>
#include <random>
#include <span>

#include "base/rounds.h"
#include "decode/jpeg/baseline/planes_fixture.h"
#include "decode/jpeg/progressive/progressive_fixture.h"
#include "decode/jpeg/scan_limit.h"

namespace feedline::decode::progressive {
namespace {

using baseline::decoded_by;
using baseline::kBlockSize;
using Taken = Pair::Taken;

class ProgressiveVariant : public testing::TestWithParam<const baseline::Kernels*> {};

TEST_P(ProgressiveVariant, RegionsHaveLibjpegsPixels) {
  Pair pair(GetParam());
  for (const ProgressiveKind& kind : taken_kinds()) {
    const EncodedBytes bytes = encode(kind);
    const int width = kind.picture.width, height = kind.picture.height;
    ASSERT_EQ(pair.expect_same(bytes, {0, 0, width, height}, kind.name), Taken::kByUs) << kind.name;
    std::mt19937 random(3);
    for (int i = 0; i < 6; ++i) {
      const int w = 1 + static_cast<int>(random() % static_cast<unsigned>(width));
      const int h = 1 + static_cast<int>(random() % static_cast<unsigned>(height));
      const Box region{static_cast<int>(random() % static_cast<unsigned>(width - w + 1)),
                       static_cast<int>(random() % static_cast<unsigned>(height - h + 1)), w, h};
      ASSERT_EQ(pair.expect_same(bytes, region, kind.name, i == 0 ? ColorMode::kL : ColorMode::kRgb), Taken::kByUs);
    }
  }
}

// The samples must be the same as those from the baseline decoder for the same coefficients.
TEST_P(ProgressiveVariant, PlanesAreTheBaselineDecoders) {
  JpegDecoder ours(GetParam());
  memory::Planes planes, expected;
  for (const auto& [h, v] : {std::pair{2, 2}, {2, 1}, {1, 1}})
    for (const int most : {1, 2, 4, 8, 16}) {
      JpegKind kind{.width = 149, .height = 83, .h = h, .v = v};
      const EncodedBytes sequential = decode::encode(kind);
      kind.progressive = true;
      const EncodedBytes bytes = decode::encode(kind);
      const Box region{5, 7, 120, 61};
      ASSERT_TRUE(ours.open(sequential));
      ASSERT_TRUE(ours.decode_planes(region, ColorMode::kRgb, {most, most}, expected));
      ASSERT_TRUE(ours.open(bytes));
      ASSERT_TRUE(ours.decode_planes(region, ColorMode::kRgb, {most, most}, planes));
      EXPECT_TRUE(ours.used_progressive());
      ASSERT_EQ(planes.count, expected.count);
      for (int c = 0; c < planes.count; ++c) {
        memory::Plane &plane = planes.plane[c], &other = expected.plane[c];
        ASSERT_TRUE(plane.x == other.x && plane.y == other.y);
        const Box needed = samples_of(plane, region);
        ASSERT_TRUE(lies_inside(needed, plane.samples));
        for (int y = needed.top; y < needed.top + needed.height; ++y)
          ASSERT_TRUE(std::equal(plane.samples.row(y) + needed.left, plane.samples.row(y) + needed.left + needed.width,
                                 other.samples.row(y) + needed.left));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, ProgressiveVariant, testing::ValuesIn(baseline::all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST(ProgressiveDecoder, LeavesWhatIsUnusualToLibjpeg) {
  Pair pair;
  const auto expect_left = [&pair](const std::string& what, const EncodedBytes& bytes) {
    EXPECT_EQ(pair.expect_same(bytes, {0, 0, 61, 47}, what), Taken::kByLibjpeg) << what;
  };
  for (const ScanScript& script : incomplete_scripts())
    expect_left(script.name, encode({script.name, {}, script.scans}));
  for (const JpegKind& kind : {JpegKind{.name = "1x2", .h = 1, .v = 2},
                               {.name = "4x1", .h = 4, .v = 1},
                               {.name = "arithmetic", .arithmetic = true},
                               {.name = "RGB", .h = 1, .v = 1, .stored = JCS_RGB},
                               {.name = "CMYK", .channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK}}) {
    JpegKind progressive = kind;
    progressive.progressive = true;
    expect_left(kind.name, decode::encode(progressive));
  }
}

TEST(ProgressiveDecoder, WhatStandsBetweenScansIsTakenAlike) {
  Pair pair;
  const EncodedBytes good = decode::encode({.progressive = true});
  const Box all{0, 0, 61, 47};
  const auto with = [&good](std::size_t at, std::vector<int> bytes) {
    EncodedBytes result = good;
    for (const int byte : bytes) result.insert(result.begin() + static_cast<std::ptrdiff_t>(at++), std::byte(byte));
    return result;
  };
  const std::vector<std::size_t> locations = segments_between_scans(good);
  ASSERT_GT(locations.size(), 5u);
  for (const std::size_t at : locations) {
    EXPECT_EQ(pair.expect_same(with(at, {0xFF, 0xFE, 0, 4, 1, 2}), all, "a comment"), Taken::kByUs);
    EXPECT_EQ(pair.expect_same(with(at, {0xFF, 0xE2, 0, 3, 1}), all, "a profile"), Taken::kByUs);
    EXPECT_EQ(pair.expect_same(with(at, {0xFF, 0xFF}), all, "fill bytes"), Taken::kByUs);
    EXPECT_EQ(pair.expect_same(with(at, {1, 2, 3}), all, "garbage"), Taken::kByLibjpeg);
    const Taken by = pair.expect_same(with(at, {0xFF, 0xD9}), all, "an early end");
    EXPECT_EQ(by == Taken::kByUs, at == locations.back());
    pair.expect_same(with(at, {0xFF, 0xD8}), all, "another start");
    pair.expect_same(with(at, {0xFF, 0xDD, 0, 4, 0, 5}), all, "another interval");
  }
  EncodedBytes extended = good;
  extended.resize(good.size() + 100, std::byte{0x5A});
  EXPECT_EQ(pair.expect_same(extended, all, "bytes after the end"), Taken::kByUs);
}

// Uses scans that are repeated, missing, or placed before the scans that they refine.
TEST(ProgressiveDecoder, ScansThatAreNotDueAreLibjpegs) {
  Pair pair;
  const Box all{0, 0, 61, 47};
  const EncodedBytes good = decode::encode({.progressive = true});
  const std::vector<std::size_t> locations = segments_between_scans(good);
  const auto scan = [&](std::size_t i) {
    return std::span(good).subspan(locations[i], locations[i + 1] - locations[i]);  // including its tables
  };
  for (std::size_t i = 0; i + 1 < locations.size(); ++i) {
    const auto rebuilt = [&](auto add) {
      EncodedBytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(locations[0]));
      for (std::size_t k = 0; k + 1 < locations.size(); ++k) add(bytes, k);
      bytes.insert(bytes.end(), {std::byte{0xFF}, std::byte{JPEG_EOI}});
      return bytes;
    };
    const auto append = [&](EncodedBytes& bytes, std::size_t k) {
      const auto part = scan(k);
      bytes.insert(bytes.end(), part.begin(), part.end());
    };
    const std::string name = "scan " + std::to_string(i + 2);
    const EncodedBytes twice = rebuilt([&](EncodedBytes& bytes, std::size_t k) {
      append(bytes, k);
      if (k == i) append(bytes, k);
    });
    EXPECT_NE(pair.expect_same(twice, all, name + " twice"), Taken::kByUs) << name;
    const EncodedBytes without = rebuilt([&](EncodedBytes& bytes, std::size_t k) {
      if (k != i) append(bytes, k);
    });
    EXPECT_NE(pair.expect_same(without, all, name + " left out"), Taken::kByUs) << name;
    const EncodedBytes late = rebuilt([&](EncodedBytes& bytes, std::size_t k) {
      if (k != i) append(bytes, k);
      if (k == locations.size() - 2) append(bytes, i);
    });
    pair.expect_same(late, all, name + " at the end");
  }
}

// libjpeg accepts some of these scan orders and rejects others, depending on its version.
TEST(ProgressiveDecoder, ScansOfComponentsInAnotherOrderAreLibjpegs) {
  Pair pair;
  const EncodedBytes good = decode::encode({.progressive = true});
  const std::array header{std::byte{0xFF}, std::byte{0xDA}};
  int scans = 0;
  for (auto at = good.begin(); (at = std::search(at, good.end(), header.begin(), header.end())) != good.end(); ++at) {
    const auto first = static_cast<std::size_t>(at - good.begin()) + 5;  // component, tables, component, ...
    if (good[first - 1] != std::byte{3}) continue;
    ++scans;
    for (const auto& [one, other] : {std::pair{0u, 1u}, {0u, 2u}, {1u, 2u}}) {
      EncodedBytes bytes = good;
      std::swap_ranges(bytes.begin() + first + 2 * one, bytes.begin() + first + 2 * one + 2,
                       bytes.begin() + first + 2 * other);
      const std::string name = std::to_string(one) + " and " + std::to_string(other);
      EXPECT_NE(pair.expect_same(bytes, {0, 0, 61, 47}, name), Taken::kByUs) << name;
    }
  }
  EXPECT_EQ(scans, 2);  // first and last bits of DC
}

// Uses one scan per coefficient and bit, which is valid but more than any encoder writes.
TEST(ProgressiveDecoder, AsManyScansAsLibjpegMayReadAreRead) {
  Pair pair;
  const auto of_scans = [](int count) {
    std::vector<jpeg_scan_info> scans{{1, {0}, 0, 0, 0, 0}};
    for (int k = 1; static_cast<int>(scans.size()) < count; ++k) {
      const int bits = std::min(8, count - static_cast<int>(scans.size()) - (kBlockSize - 1 - k));
      for (int low = bits - 1; low >= 0; --low) scans.push_back({1, {0}, k, k, low + 1 < bits ? low + 1 : 0, low});
    }
    return encode({"", {.width = 16, .height = 16, .channels = 1, .h = 1, .v = 1, .quality = 97}, scans});
  };
  EXPECT_EQ(pair.expect_same(of_scans(500), {0, 0, 16, 16}, "500 scans"), Taken::kByUs);
  EXPECT_EQ(pair.expect_same(of_scans(501), {0, 0, 16, 16}, "501 scans"), Taken::kByNobody);
}

TEST(ScanLimit, FallsWithThePixels) {
  EXPECT_EQ(most_scans(16, 16), 500);
  EXPECT_EQ(most_scans(2048, 2048), 500);
  EXPECT_EQ(most_scans(4096, 4096), 128);
  EXPECT_EQ(most_scans(65500, 2700), 64);
}

TEST(ProgressiveDecoder, CutFilesAreReportedAlike) {
  Pair pair;
  for (const int restart : {0, 3}) {
    const EncodedBytes good = decode::encode({.progressive = true, .restart = restart});
    for (std::size_t cut = 700; cut < good.size(); cut += 1 + cut % 3) {
      const EncodedBytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut));
      EXPECT_NE(pair.expect_same(bytes, {20, 10, 9, 9}, "cut at " + std::to_string(cut)), Taken::kByUs);
    }
  }
}

// Changes, removes or inserts bytes after the start of the first scan's header, or truncates the file.
EncodedBytes damaged(EncodedBytes bytes, std::mt19937& random) {
  const auto scan = std::ranges::search(bytes, std::array{std::byte{0xFF}, std::byte{0xDA}}).begin() - bytes.begin();
  for (unsigned times = 1 + random() % 2; times > 0; --times) {
    const auto at = bytes.begin() + scan + static_cast<std::ptrdiff_t>(random() % (bytes.end() - bytes.begin() - scan));
    constexpr int kPicked[] = {0, 0xFF, 0xDA, 0xC4};
    const auto value = static_cast<std::byte>(random() % 3 == 0 ? kPicked[random() % 4] : static_cast<int>(random()));
    const unsigned kind = random() % 16;
    if (kind == 0)
      bytes.erase(at, bytes.end());
    else if (kind == 1)
      bytes.erase(at);
    else if (kind == 2)
      bytes.insert(at, value);
    else if (kind < 6)
      *at ^= std::byte{1} << random() % 8;
    else
      *at = value;
    if (bytes.end() - bytes.begin() == scan) break;
  }
  return bytes;
}

TEST(ProgressiveDecoder, DamageIsReportedAlike) {
  Pair pair;
  std::mt19937 random(5);
  int compared = 0, taken = 0;
  const std::vector<ProgressiveKind> kinds = taken_kinds();
  ASSERT_GE(kinds.size(), 100u);  // 10,000 files
  for (const ProgressiveKind& kind : kinds) {
    const EncodedBytes good = encode(kind);
    const int width = kind.picture.width, height = kind.picture.height;
    for (int round = 0; round < base::rounds(100); ++round, ++compared) {
      const Box part{width / 3, height / 2, std::max(1, width / 2), std::max(1, height / 3)};
      const Box region = round % 2 == 0 ? Box{0, 0, width, height} : part;
      const auto by = pair.expect_same(damaged(good, random), region, kind.name + " round " + std::to_string(round));
      taken += by == Taken::kByUs;
    }
  }
  EXPECT_GT(taken, compared / 10);  // libjpeg must not decode all such files, or nothing is compared
}

TEST(ProgressiveDecoder, AFailureLeavesNoTrace) {
  JpegDecoder decoder;
  const EncodedBytes bytes = decode::encode({.progressive = true});
  const Box all{0, 0, 61, 47};
  const auto expected = decoded_by(decoder, bytes, all, ColorMode::kRgb);
  for (std::size_t cut = 700; cut < bytes.size(); cut += 41) {
    (void)decoded_by(decoder, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut)}, all, ColorMode::kRgb);
    EXPECT_EQ(decoded_by(decoder, bytes, all, ColorMode::kRgb), expected);
    EXPECT_TRUE(decoder.used_progressive());
  }
}

}  // namespace
}  // namespace feedline::decode::progressive
