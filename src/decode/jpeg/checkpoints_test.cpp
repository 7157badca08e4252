// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/checkpoints.h"

#include <cstdlib>
#include <cstring>
#include <random>

#include "decode/jpeg/baseline/baseline_fixture.h"
#include "decode/jpeg/baseline/planes_fixture.h"
#include "decode/jpeg/checkpoint_fixture.h"

namespace feedline::decode {
namespace {

using baseline::BaselineDecoder;
using baseline::Decoded;
using baseline::decoded_by;
using baseline::ReadHeader;

// Returns JPEG kinds that the baseline decoder supports, with and without useful checkpoints, and some kinds that
// libjpeg must decode.
std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all;
  const auto add = [&all](const std::string& name, JpegKind kind) {
    kind.name = name;
    all.push_back(kind);
  };
  struct Layout {
    int channels, h, v;
  };
  for (const auto& [channels, h, v] : {Layout{3, 2, 2}, {3, 2, 1}, {3, 1, 1}, {1, 1, 1}}) {
    const std::string name = channels == 1 ? "grey" : std::to_string(h) + "x" + std::to_string(v);
    add(name, {.width = 701, .height = 403, .channels = channels, .h = h, .v = v, .quality = 95});
    add(name + " wide", {.width = 1603, .height = 211, .channels = channels, .h = h, .v = v, .quality = 97});
    add(name + " tall", {.width = 97, .height = 1201, .channels = channels, .h = h, .v = v, .quality = 98});
    add(name + " optimised",
        {.width = 512, .height = 384, .channels = channels, .h = h, .v = v, .quality = 96, .optimised = true});
    for (const int restart : {1, 7, 31, 90, 137, 1000})
      add(name + " restart " + std::to_string(restart),
          {.width = 650, .height = 390, .channels = channels, .h = h, .v = v, .restart = restart, .quality = 96});
  }
  add("small", {});
  add("1x2", {.width = 500, .height = 375, .h = 1, .v = 2});
  add("progressive", {.width = 500, .height = 375, .progressive = true});
  add("CMYK", {.width = 500, .height = 375, .channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK});
  add("YCCK", {.width = 500, .height = 375, .channels = 4, .stored = JCS_YCCK});
  return all;
}

Box draw_region(int width, int height, std::mt19937& random) {
  const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  const int most = below(3) == 0 ? 2000 : 250;
  const int w = 1 + below(std::min(width, most)), h = 1 + below(std::min(height, most));
  return {below(width - w + 1), below(height - h + 1), w, h};
}

// Returns the number of random crops: FEEDLINE_CHECKPOINT_CROPS, or a default that covers every kind.
int crops() {
  const char* const wanted = std::getenv("FEEDLINE_CHECKPOINT_CROPS");
  return wanted ? std::atoi(wanted) : 800;
}

struct Image {
  JpegKind kind;
  EncodedBytes bytes;
};
std::vector<Image> images() {
  std::vector<Image> all;
  for (const JpegKind& kind : kinds()) all.push_back({kind, encode(kind)});
  return all;
}

TEST(Checkpoints, RandomCropsHaveThePixelsOfADecodeFromTheStart) {
  MemoryCheckpoints store;
  JpegDecoder with, without;
  with.use_checkpoints(&store);
  const std::vector<Image> all = images();
  std::mt19937 random(1);
  for (int i = 0; i < crops(); ++i) {
    const Image& image = all[static_cast<std::size_t>(i) % all.size()];
    const Box region = draw_region(image.kind.width, image.kind.height, random);
    const ColorMode mode = random() % 4 == 0 ? ColorMode::kL : ColorMode::kRgb;
    ASSERT_TRUE(decoded_by(with, image.bytes, region, mode) == decoded_by(without, image.bytes, region, mode))
        << image.kind.name << " " << image.kind.width << " x " << image.kind.height << ", at " << region.left << ", "
        << region.top << " of " << region.width << " x " << region.height;
    ASSERT_EQ(with.used_baseline(), without.used_baseline()) << image.kind.name;
  }
  EXPECT_GT(store.count(CheckpointEvent::kUsed), crops() / 4);
  EXPECT_GT(store.entries.size(), 16U);
  EXPECT_EQ(store.count(CheckpointEvent::kChanged) + store.count(CheckpointEvent::kDamaged), 0);
}

TEST(Checkpoints, PairsAndPlanesUseThemToo) {
  MemoryCheckpoints store;
  JpegDecoder first, second, without;
  first.use_checkpoints(&store);
  second.use_checkpoints(&store);
  const std::vector<Image> all = images();
  std::mt19937 random(2);
  memory::PixelBuffer a, b;
  for (int i = 0; i < 200; ++i) {
    const Image &one = all[random() % all.size()], &other = all[random() % all.size()];
    const Box box = draw_region(one.kind.width, one.kind.height, random);
    const Box other_box = draw_region(other.kind.width, other.kind.height, random);
    ASSERT_TRUE(first.open(one.bytes) && second.open(other.bytes));
    ASSERT_TRUE(a.resize(box.width, box.height, 3) && b.resize(other_box.width, other_box.height, 3));
    const auto results =
        JpegDecoder::decode_in_turn(first, {box, ColorMode::kRgb, &a}, second, {other_box, ColorMode::kRgb, &b});
    ASSERT_TRUE(results[0] && results[1]);
    ASSERT_EQ(baseline::packed(a), decoded_by(without, one.bytes, box, ColorMode::kRgb).pixels) << one.kind.name;
    ASSERT_EQ(baseline::packed(b), decoded_by(without, other.bytes, other_box, ColorMode::kRgb).pixels);

    memory::Planes mine, expected;
    const int coarseness = 1 << random() % 4;
    ASSERT_TRUE(first.open(one.bytes) && without.open(one.bytes));
    const bool has_planes = without.decode_planes(box, ColorMode::kRgb, {coarseness, coarseness}, expected);
    ASSERT_EQ(first.decode_planes(box, ColorMode::kRgb, {coarseness, coarseness}, mine), has_planes);
    for (int c = 0; has_planes && c < mine.count; ++c) {
      const Box needed = samples_of(mine.plane[c], box);
      for (int y = needed.top; y < needed.top + needed.height; ++y)
        ASSERT_EQ(std::memcmp(mine.plane[c].samples.row(y) + needed.left,
                              expected.plane[c].samples.row(y) + needed.left, static_cast<std::size_t>(needed.width)),
                  0)
            << one.kind.name;
    }
  }
  EXPECT_GT(store.count(CheckpointEvent::kUsed), 100);
}

// Without digests, the bytes before a checkpoint may be changed arbitrarily, because they are not read.
TEST(Checkpoints, TheBytesBeforeACheckpointAreSkipped) {
  for (const int restart : {0, 150}) {
    const EncodedBytes bytes = encode({.width = 1603, .height = 611, .restart = restart, .quality = 95});
    const ReadHeader header(bytes);
    const auto frame = header.frame();
    BaselineDecoder decoder;
    const auto decode = [&decoder](const baseline::Frame& of, const Box& region, Checkpoints* checkpoints) {
      memory::PixelBuffer out;
      EXPECT_TRUE(out.resize(region.width, region.height, 3));
      return decoder.decode(of, region, ColorMode::kRgb, out, checkpoints) ? baseline::packed(out)
                                                                           : std::vector<std::uint8_t>();
    };
    Checkpoints checkpoints{.grid = *checkpoint_grid(frame->mcus_across(), frame->mcus_down(), bytes.size())};
    EXPECT_LT(checkpoints.grid.step, checkpoints.grid.across);
    ASSERT_FALSE(decode(*frame, {0, 0, 1603, 611}, &checkpoints).empty());
    EXPECT_EQ(checkpoints.known.size(), checkpoints.grid.size());

    const Box region{1301, 401, 224, 150};
    const auto expected = decode(*frame, region, nullptr);
    const std::size_t scan = bytes.size() - frame->scan.size();
    const std::size_t used = checkpoints.grid.last_before(region.top / 16 * frame->mcus_across() + 60);
    EncodedBytes garbage = bytes;
    std::fill(garbage.begin() + static_cast<std::ptrdiff_t>(scan),
              garbage.begin() + static_cast<std::ptrdiff_t>(scan + checkpoints.known[used].bit / 8), std::byte{0x5A});
    const ReadHeader garbage_header(garbage);
    EXPECT_EQ(decode(*garbage_header.frame(), region, &checkpoints), expected) << restart;
    EXPECT_NE(decode(*garbage_header.frame(), region, nullptr), expected);
  }
}

// The known checkpoints reach down to the lowest crop so far.
TEST(Checkpoints, GrowWithEachLowerCrop) {
  MemoryCheckpoints store;
  JpegDecoder decoder, without;
  decoder.use_checkpoints(&store);
  const EncodedBytes bytes = encode({.width = 640, .height = 480, .quality = 95});
  std::size_t size = 0;
  for (int top = 100; top < 400; top += 100) {
    const Box region{300, top, 64, 64};
    EXPECT_TRUE(decoded_by(decoder, bytes, region, ColorMode::kRgb) ==
                decoded_by(without, bytes, region, ColorMode::kRgb));
    ASSERT_EQ(store.entries.size(), 1U);
    EXPECT_GT(store.entries.begin()->second.size(), size);
    size = store.entries.begin()->second.size();
    EXPECT_LE(size, bytes.size() / 100);
  }
  EXPECT_EQ(store.count(CheckpointEvent::kMade), 3);
  EXPECT_EQ(store.count(CheckpointEvent::kUsed), 2);
  decoded_by(decoder, bytes, {300, 100, 64, 64}, ColorMode::kRgb);
  EXPECT_EQ(store.count(CheckpointEvent::kMade), 3);
}

TEST(Checkpoints, TakeOneHundredthOfAFileAtMost) {
  MemoryCheckpoints store;
  JpegDecoder decoder;
  decoder.use_checkpoints(&store);
  for (const JpegKind& kind : kinds()) {
    const EncodedBytes bytes = encode(kind);
    store.entries.clear();
    decoded_by(decoder, bytes, {0, kind.height - 1, 1, 1}, ColorMode::kRgb);
    if (!store.entries.empty()) {
      EXPECT_LE(store.entries.begin()->second.size(), bytes.size() / 80) << kind.name << " " << bytes.size();
    }
  }
  const EncodedBytes photo = encode({.width = 500, .height = 375, .quality = 95});
  store.entries.clear();
  decoded_by(decoder, photo, {0, 374, 1, 1}, ColorMode::kRgb);
  EXPECT_LE(store.entries.begin()->second.size(), 220U);
}

class ChangedFile : public testing::Test {
 protected:
  void SetUp() override {
    with.use_checkpoints(&store);
    ASSERT_EQ(decoded_by(with, bytes, {0, kHeight - 1, 1, 1}, ColorMode::kRgb).error, "");
    ASSERT_EQ(store.entries.size(), 1U);
  }
  // Compares decoding with and without checkpoints, and returns whether decoding succeeded.
  bool is_same(const EncodedBytes& changed, const Box& region) {
    const Decoded expected = decoded_by(without, changed, region, ColorMode::kRgb);
    EXPECT_TRUE(decoded_by(with, changed, region, ColorMode::kRgb) == expected) << expected.error;
    return expected.error.empty();
  }

  static constexpr int kWidth = 900, kHeight = 700;
  const EncodedBytes bytes = encode({.width = kWidth, .height = kHeight, .quality = 96});
  const std::size_t scan = bytes.size() - ReadHeader(bytes).frame()->scan.size();
  const Box region{500, 400, 100, 100};
  MemoryCheckpoints store;
  JpegDecoder with, without;
};

// A replaced file may have the same size, header and modification time, and differ only in its contents.
TEST_F(ChangedFile, ADifferentByteBeforeTheCropIsNoticed) {
  std::mt19937 random(3);
  int decoded = 0;
  const auto entries = store.entries;
  for (int i = 0; i < 120; ++i) {
    store.entries = entries;
    store.events = {};
    EncodedBytes changed = bytes;
    const std::size_t at = scan + 300 + random() % (bytes.size() / 2 - scan);
    changed[at] ^= static_cast<std::byte>(1 + random() % 255);
    decoded += is_same(changed, region);
    EXPECT_EQ(store.count(CheckpointEvent::kChanged), 1) << at;
    EXPECT_EQ(store.count(CheckpointEvent::kUsed), 0);
  }
  EXPECT_GT(decoded, 10);  // some changes only change pixels
}

TEST_F(ChangedFile, CheckpointsAreMadeAgain) {
  EncodedBytes changed = bytes;
  for (std::size_t at = scan + 400;; ++at) {  // a change that leaves the file decodable
    changed = bytes;
    changed[at] ^= std::byte{1};
    if (decoded_by(without, changed, region, ColorMode::kRgb).error.empty()) break;
  }
  EXPECT_TRUE(is_same(changed, region));
  EXPECT_EQ(store.count(CheckpointEvent::kMade), 2);
  EXPECT_TRUE(is_same(changed, region));
  EXPECT_EQ(store.count(CheckpointEvent::kUsed), 1);
  EXPECT_EQ(store.count(CheckpointEvent::kChanged), 1);
}

TEST_F(ChangedFile, TruncationHasTheSameResult) {
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    EncodedBytes cut = bytes;
    cut.resize(scan + random() % (bytes.size() - scan));
    is_same(cut, region);
    is_same(cut, {0, 0, 60, 60});
    EncodedBytes hollow = bytes;  // the same size, but zeros from some place on
    std::fill(hollow.begin() + static_cast<std::ptrdiff_t>(cut.size()), hollow.end(), std::byte{0});
    is_same(hollow, region);
  }
}

TEST_F(ChangedFile, DamageInsideTheCropHasTheSameResult) {
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    EncodedBytes changed = bytes;
    changed[bytes.size() / 2 + random() % (bytes.size() / 3)] ^= static_cast<std::byte>(1 + random() % 255);
    is_same(changed, region);
  }
}

TEST_F(ChangedFile, DamagedEntriesAreNoticed) {
  const auto entry = store.entries.begin()->second;
  for (std::size_t at = 0; at < entry.size(); ++at) {
    auto& stored = store.entries.begin()->second;
    stored = entry;
    stored[at] ^= std::byte{0x10};
    store.events = {};
    if (at % 7 != 0 && at > 12) continue;
    EXPECT_TRUE(is_same(bytes, region));
    EXPECT_EQ(store.count(CheckpointEvent::kDamaged), 1) << at;
    EXPECT_EQ(store.entries.size(), 1U);
  }
  for (std::size_t size = 0; size < entry.size(); size += 13) {
    store.entries.begin()->second.assign(entry.begin(), entry.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(is_same(bytes, region));
  }
}

TEST_F(ChangedFile, AnotherImagesEntryIsNotUsed) {
  const EncodedBytes other = encode({.width = kWidth, .height = kHeight, .quality = 90});
  const auto first = store.entries.begin()->first;
  decoded_by(with, other, region, ColorMode::kRgb);
  ASSERT_EQ(store.entries.size(), 2U);
  for (auto& [key, entry] : store.entries)
    if (key != first) store.entries[first] = entry;
  EXPECT_TRUE(is_same(bytes, region));
  EXPECT_EQ(store.count(CheckpointEvent::kDamaged), 1);
}

TEST(CheckpointGrid, CountsPositions) {
  const CheckpointGrid grid{.across = 100, .down = 3, .step = 32};
  EXPECT_EQ(grid.per_row(), 4);
  EXPECT_EQ(grid.size(), 12U);
  EXPECT_EQ(grid.mcu(0), 0);
  EXPECT_EQ(grid.mcu(3), 96);
  EXPECT_EQ(grid.mcu(4), 100);
  EXPECT_EQ(grid.last_before(99), 3U);
  EXPECT_EQ(grid.last_before(95), 2U);
  EXPECT_EQ(grid.last_before(100), 4U);
  EXPECT_EQ(grid.last_before(300), 12U);
  EXPECT_FALSE(checkpoint_grid(100, 100, 4000));   // too small a file
  EXPECT_FALSE(checkpoint_grid(1, 4000, 100000));  // too few bytes per row
  EXPECT_EQ(checkpoint_grid(32, 24, 100000)->step, 32);
  EXPECT_EQ(checkpoint_grid(120, 80, 600000)->step, 16);
}

}  // namespace
}  // namespace feedline::decode
