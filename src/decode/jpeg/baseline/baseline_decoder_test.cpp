// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_decoder.h"

#include <random>

#include "decode/jpeg/baseline/baseline_fixture.h"

namespace feedline::decode::baseline {
namespace {

// Returns every layout that the decoder supports, with all encoder options.
std::vector<JpegKind> taken_kinds() {
  struct Layout {
    int channels, h, v;
  };
  std::vector<JpegKind> all;
  for (const auto& [channels, h, v] : {Layout{3, 2, 2}, {3, 2, 1}, {3, 1, 1}, {1, 1, 1}}) {
    const std::string name = channels == 1 ? "grey" : std::to_string(h) + "x" + std::to_string(v);
    const auto add = [&](const std::string& what, JpegKind kind) {
      kind.name = name + " " + what, kind.channels = channels, kind.h = h, kind.v = v;
      all.push_back(kind);
    };
    for (const int quality : {2, 40, 75, 90, 100})
      for (const bool optimised : {false, true})
        add("quality " + std::to_string(quality) + (optimised ? " optimised" : ""),
            {.width = 149, .height = 83, .quality = quality, .optimised = optimised});
    for (const int restart : {1, 2, 7})
      add("restart " + std::to_string(restart), {.width = 130, .height = 67, .restart = restart});
    for (const int size : {5, 6, 8, 9, 15, 16, 17, 31, 33, 48})
      add("small", {.width = size, .height = 49 - size, .optimised = size % 2 == 0});
  }
  return all;
}

class BaselineVariant : public testing::TestWithParam<const Kernels*> {};

TEST_P(BaselineVariant, RegionsHaveLibjpegsPixels) {
  BaselineDecoder ours(*GetParam());
  JpegDecoder theirs(nullptr);
  for (const JpegKind& kind : taken_kinds()) {
    const EncodedBytes bytes = encode(kind);
    const ReadHeader header(bytes);
    const auto frame = header.frame();
    ASSERT_TRUE(frame) << kind.name;
    const int channels = 3;
    const Decoded whole = decoded_by(theirs, bytes, {0, 0, kind.width, kind.height}, ColorMode::kRgb);
    ASSERT_EQ(whole.error, "") << kind.name;
    for (const Box& region : regions_of(kind.width, kind.height))
      ASSERT_EQ(decoded_by(ours, *frame, region, ColorMode::kRgb), cropped(whole.pixels, kind.width, region, channels))
          << kind.name << " " << kind.width << " x " << kind.height << ", at " << region.left << ", " << region.top
          << " of " << region.width << " x " << region.height;
    const Box all{0, 0, kind.width, kind.height};
    ASSERT_EQ(decoded_by(ours, *frame, all, ColorMode::kL), decoded_by(theirs, bytes, all, ColorMode::kL).pixels);
  }
}

// Uses images that are larger than one input piece and have rows wider than one MCU chunk.
TEST_P(BaselineVariant, LargeImagesHaveLibjpegsPixels) {
  BaselineDecoder ours(*GetParam());
  JpegDecoder theirs(nullptr);
  for (const int v : {1, 2}) {
    const EncodedBytes bytes = encode({.width = 1003, .height = 301, .v = v, .quality = 98, .optimised = v == 1});
    const ReadHeader header(bytes);
    for (const Box& region : {Box{0, 0, 1003, 301}, {517, 97, 311, 201}, {1, 250, 1000, 49}, {900, 3, 103, 297}})
      ASSERT_EQ(decoded_by(ours, *header.frame(), region, ColorMode::kRgb),
                decoded_by(theirs, bytes, region, ColorMode::kRgb).pixels);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BaselineVariant, testing::ValuesIn(all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST(BaselineDecoder, TakesWhatItKnowsAndNothingElse) {
  JpegDecoder decoder;
  const auto took = [&decoder](const JpegKind& kind) {
    EXPECT_EQ(decoded_by(decoder, encode(kind), {0, 0, 9, 9}, ColorMode::kRgb).error, "") << kind.name;
    return decoder.used_baseline();
  };
  for (const JpegKind& kind : taken_kinds())
    if (kind.width >= 9 && kind.height >= 9) {
      EXPECT_TRUE(took(kind)) << kind.name;
    }
  const JpegKind others[] = {
      {.name = "1x2", .h = 1, .v = 2},
      {.name = "4x1", .h = 4, .v = 1},
      {.name = "grey 2x2", .channels = 1},
      {.name = "progressive", .progressive = true},
      {.name = "arithmetic", .arithmetic = true},
      {.name = "separate scans", .interleaved = false},
      {.name = "RGB", .h = 1, .v = 1, .stored = JCS_RGB},
      {.name = "CMYK", .channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK},
      {.name = "YCCK", .channels = 4, .stored = JCS_YCCK},
      {.name = "motion JPEG", .tables = false},
  };
  for (const JpegKind& kind : others) EXPECT_FALSE(took(kind)) << kind.name;
}

TEST(BaselineDecoder, LeavesChromaThatLibjpegDoesNotMixToLibjpeg) {
  for (int width = 1; width < 9; ++width) {
    const EncodedBytes bytes = encode({.width = width, .height = 20});
    EXPECT_EQ(ReadHeader(bytes).frame().has_value(), width > 4) << width;
  }
}

TEST(BaselineDecoder, AFailureLeavesNoTrace) {
  BaselineDecoder decoder;
  const EncodedBytes bytes = encode({.width = 149, .height = 83});
  EncodedBytes cut = bytes;
  cut.resize(bytes.size() * 2 / 3);
  const ReadHeader header(bytes), cut_header(cut);
  const Box all{0, 0, 149, 83};
  const auto expected = decoded_by(decoder, *header.frame(), all, ColorMode::kRgb);
  EXPECT_TRUE(decoded_by(decoder, *cut_header.frame(), all, ColorMode::kRgb).empty());
  EXPECT_EQ(decoded_by(decoder, *header.frame(), all, ColorMode::kRgb), expected);
}

}  // namespace
}  // namespace feedline::decode::baseline
