// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_part.h"

#include <algorithm>
#include <array>
#include <random>

#include "decode/decoder.h"
#include "decode/jpeg/baseline/baseline_fixture.h"
#include "decode/jpeg/checkpoint_fixture.h"

namespace feedline::decode {
namespace {

using baseline::Decoded;
using baseline::decoded_by;
using baseline::packed;

std::span<const std::byte> range_of(const EncodedBytes& file, const JpegPart& part) {
  return std::span(file).subspan(part.begin, part.end - part.begin);
}

// Inserts a segment after the first marker.
EncodedBytes with_segment(const EncodedBytes& file, int marker, EncodedBytes payload) {
  EncodedBytes made(file.begin(), file.begin() + 2);
  const std::size_t length = payload.size() + 2;
  for (const std::size_t byte : {std::size_t{0xFF}, static_cast<std::size_t>(marker), length >> 8, length & 0xFF})
    made.push_back(static_cast<std::byte>(byte));
  made.insert(made.end(), payload.begin(), payload.end());
  made.insert(made.end(), file.begin() + 2, file.end());
  return made;
}

// EXIF data with an orientation and, as if for a thumbnail, many more bytes.
EncodedBytes exif(int orientation) {
  EncodedBytes bytes;
  const std::array<int, 32> start{0x45, 0x78, 0x69, 0x66, 0, 0, 0x49, 0x49, 42, 0, 8, 0,          0,
                                  0,    1,    0,    0x12, 1, 3, 0,    1,    0,  0, 0, orientation};
  for (const int byte : start) bytes.push_back(static_cast<std::byte>(byte));
  bytes.resize(9000, std::byte{0x55});
  return bytes;
}

struct Large {
  EncodedBytes file;
  int width, height;
};
std::vector<Large> large_files() {
  std::vector<Large> all;
  struct Layout {
    int channels, h, v, restart;
  };
  for (const auto& [channels, h, v, restart] :
       {Layout{3, 2, 2, 0}, {3, 2, 1, 0}, {3, 1, 1, 0}, {1, 1, 1, 0}, {3, 2, 2, 500}, {3, 1, 1, 1000}, {3, 2, 2, 1}})
    for (const auto& [width, height] : {std::pair{1601, 1203}, {901, 1999}})
      all.push_back({encode({.width = width,
                             .height = height,
                             .channels = channels,
                             .h = h,
                             .v = v,
                             .restart = restart,
                             .quality = 96}),
                     width, height});
  return all;
}

class Parts : public testing::Test {
 protected:
  void SetUp() override { maker.use_checkpoints(&store); }

  JpegOutline make(const EncodedBytes& file, int width, int height) {
    EXPECT_TRUE(maker.open(file));
    memory::PixelBuffer pixel;
    EXPECT_TRUE(maker.decode({width - 1, height - 1, 1, 1}, ColorMode::kRgb, pixel));
    const auto outline = outline_of(file);
    EXPECT_TRUE(outline);
    const auto stored = read_outline(to_bytes(*outline));
    EXPECT_TRUE(stored);
    return *stored;
  }
  std::shared_ptr<JpegPart> find(const JpegOutline& outline, const Box& region, bool is_same_file,
                                 bool applies_exif = false) {
    EXPECT_TRUE(decoder.open(outline.head, applies_exif));
    return decoder.find_part(region, outline, is_same_file, store);
  }
  std::vector<std::uint8_t> decode(JpegPart& part, const Box& region, ColorMode mode, bool applies_exif = false) {
    EXPECT_TRUE(decoder.open(part.file, applies_exif));
    decoder.use_part(&part);
    memory::PixelBuffer out;
    return decoder.decode(region, mode, out) ? packed(out) : std::vector<std::uint8_t>();
  }
  std::vector<std::uint8_t> expected(const EncodedBytes& file, const Box& region, ColorMode mode,
                                     bool applies_exif = false) {
    EXPECT_TRUE(whole.open(file, applies_exif));
    memory::PixelBuffer out;
    return whole.decode(region, mode, out) ? packed(out) : std::vector<std::uint8_t>();
  }

  MemoryCheckpoints store;
  ImageDecoder maker, decoder, whole;
};

TEST_F(Parts, HaveThePixelsOfADecodeFromTheStart) {
  std::mt19937 random(1);
  const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  int parts = 0, regions = 0;
  for (const Large& image : large_files()) {
    const JpegOutline outline = make(image.file, image.width, image.height);
    for (int i = 0; i < 30; ++i) {
      const int w = 1 + below(300), h = 1 + below(300);
      const int left = i % 7 == 0 ? image.width - w : below(image.width - w + 1);
      const int top = i % 5 == 0 ? image.height - h : below(image.height - h + 1);
      const Box region{left, top, w, h};
      const bool is_same_file = i % 3 != 0;
      const ColorMode mode = i % 4 == 0 ? ColorMode::kL : ColorMode::kRgb;
      ++regions;
      const auto part = find(outline, region, is_same_file);
      if (!part) continue;
      ++parts;
      EXPECT_EQ(part->begin == 0 || is_same_file, true);
      EXPECT_LE(part->end - part->begin, image.file.size() * 3 / 4);
      ASSERT_TRUE(part->fill(range_of(image.file, *part)));
      ASSERT_EQ(decode(*part, region, mode), expected(image.file, region, mode))
          << image.width << " at " << left << ", " << top << " of " << w << " x " << h;
    }
  }
  EXPECT_GT(parts, regions / 2);
}

TEST_F(Parts, DecodePlanesAndPairs) {
  const EncodedBytes file = encode({.width = 1601, .height = 1203, .quality = 95});
  const JpegOutline outline = make(file, 1601, 1203);
  const Box region{700, 600, 224, 224}, other{100, 900, 100, 100};
  const auto one = find(outline, region, true), two = find(outline, other, true);
  ASSERT_TRUE(one && two && one->fill(range_of(file, *one)) && two->fill(range_of(file, *two)));
  ImageDecoder second;
  ASSERT_TRUE(decoder.open(one->file) && second.open(two->file));
  decoder.use_part(one.get());
  second.use_part(two.get());
  memory::PixelBuffer a, b;
  const auto done =
      ImageDecoder::decode_in_turn(decoder, {region, ColorMode::kRgb, &a}, second, {other, ColorMode::kRgb, &b});
  ASSERT_TRUE(done[0] && done[1]);
  EXPECT_EQ(packed(a), expected(file, region, ColorMode::kRgb));
  EXPECT_EQ(packed(b), expected(file, other, ColorMode::kRgb));

  ASSERT_TRUE(decoder.open(one->file) && whole.open(file));
  decoder.use_part(one.get());
  memory::Planes mine, planes;
  ASSERT_TRUE(decoder.decode_planes(region, ColorMode::kRgb, {2, 2}, mine));
  ASSERT_TRUE(whole.decode_planes(region, ColorMode::kRgb, {2, 2}, planes));
  for (int c = 0; c < mine.count; ++c) EXPECT_EQ(packed(mine.plane[c].samples), packed(planes.plane[c].samples)) << c;
}

TEST_F(Parts, OnlyThePlannedRegionIsDecoded) {
  const EncodedBytes file = encode({.width = 1601, .height = 1203, .quality = 95});
  const JpegOutline outline = make(file, 1601, 1203);
  const Box region{700, 600, 224, 224};
  const auto part = find(outline, region, true);
  ASSERT_TRUE(part && part->fill(range_of(file, *part)));
  for (const Box& other : {Box{700, 500, 224, 224}, {600, 600, 224, 224}, {700, 600, 224, 225}})
    EXPECT_TRUE(decode(*part, other, ColorMode::kRgb).empty());
}

TEST_F(Parts, RotatedImages) {
  const EncodedBytes plain = encode({.width = 1601, .height = 1203, .quality = 95});
  for (const int orientation : {3, 6}) {
    const EncodedBytes file = with_segment(plain, 0xE1, exif(orientation));
    const JpegOutline outline = make(file, 1601, 1203);
    EXPECT_LT(outline.head.size(), 2000u) << "without a thumbnail";
    const Box region{300, 500, 100, 120};
    const auto part = find(outline, region, true, true);
    ASSERT_TRUE(part && part->fill(range_of(file, *part)));
    EXPECT_EQ(decode(*part, region, ColorMode::kRgb, true), expected(file, region, ColorMode::kRgb, true));
  }
}

TEST_F(Parts, OtherBytesAreNoticed) {
  const EncodedBytes file = encode({.width = 1601, .height = 1203, .quality = 95});
  const JpegOutline outline = make(file, 1601, 1203);
  const Box region{700, 600, 224, 224};
  std::mt19937 random(2);
  for (const bool is_same_file : {true, false}) {
    for (int i = 0; i < 40; ++i) {
      const auto part = find(outline, region, is_same_file);
      ASSERT_TRUE(part);
      EncodedBytes changed = file;
      changed[part->begin + random() % (part->end - part->begin)] ^= static_cast<std::byte>(1 + random() % 255);
      EXPECT_FALSE(part->fill(range_of(changed, *part)));
      EXPECT_FALSE(part->fill(range_of(file, *part).subspan(1)));
    }
  }
}

// Another file may have the same key: then its checkpoints replace those of the outline's file.
TEST_F(Parts, CheckpointsOfAnotherFileAreNotUsed) {
  const EncodedBytes file = encode({.width = 1601, .height = 1203, .quality = 95});
  const JpegOutline outline = make(file, 1601, 1203);
  const Box above{10, 40, 100, 100}, below{700, 900, 100, 100};
  ASSERT_TRUE(find(outline, below, true));
  EncodedBytes other = file;
  for (std::size_t at = file.size() / 2; expected(other, {1600, 1202, 1, 1}, ColorMode::kRgb).empty() || other == file;
       ++at) {
    other = file;
    other[at] ^= std::byte{1};
  }
  const JpegOutline of_other = make(other, 1601, 1203);
  ASSERT_EQ(of_other.key, outline.key);
  EXPECT_FALSE(find(outline, below, true));
  EXPECT_TRUE(find(outline, above, true)) << "the files are the same up to there";
  EXPECT_TRUE(find(of_other, below, true));
}

TEST_F(Parts, UnknownCheckpointsNeedTheWholeFile) {
  const EncodedBytes file = encode({.width = 1601, .height = 1203, .quality = 95});
  ASSERT_TRUE(maker.open(file));
  memory::PixelBuffer out;
  ASSERT_TRUE(maker.decode({800, 600, 50, 50}, ColorMode::kRgb, out));
  const JpegOutline outline = *outline_of(file);
  EXPECT_TRUE(find(outline, {800, 400, 100, 100}, true));
  EXPECT_FALSE(find(outline, {800, 800, 100, 100}, true));
  store.entries.clear();
  EXPECT_FALSE(find(outline, {800, 400, 100, 100}, true));
}

TEST(JpegOutline, DamageIsNoticed) {
  const auto stored = to_bytes(*outline_of(encode({.width = 1601, .height = 1203, .quality = 95})));
  for (std::size_t at = 0; at < stored.size(); ++at) {
    auto damaged = stored;
    damaged[at] ^= std::byte{4};
    EXPECT_FALSE(read_outline(damaged)) << at;
    EXPECT_FALSE(read_outline(std::span(stored).first(at)));
  }
}

TEST(JpegOutline, OnlyOfLargePlainFiles) {
  EXPECT_FALSE(outline_of(encode({.width = 200, .height = 200})));
  EXPECT_FALSE(outline_of(encode({.width = 1601, .height = 1203, .progressive = true, .quality = 95})));
  EncodedBytes file = encode({.width = 1601, .height = 1203, .quality = 95});
  EXPECT_TRUE(outline_of(with_segment(file, 0xE2, EncodedBytes(60000))));
  EXPECT_LT(outline_of(with_segment(file, 0xE2, EncodedBytes(60000)))->head.size(), 2000u);
  file[2] = std::byte{0};
  EXPECT_FALSE(outline_of(file));
  EXPECT_FALSE(outline_of(EncodedBytes(100'000)));
}

}  // namespace
}  // namespace feedline::decode
