// SPDX-License-Identifier: Apache-2.0

// If two images are decoded alternately, each must produce the same pixels and errors as when it is decoded alone,
// whatever the other image is.

#include "decode/jpeg/baseline/baseline_turns.h"

#include <random>

#include "base/rounds.h"
#include "decode/jpeg/baseline/baseline_fixture.h"

namespace feedline::decode::baseline {
namespace {

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all;
  for (const auto& [channels, h, v] : {std::array{3, 2, 2}, {3, 2, 1}, {3, 1, 1}, {1, 1, 1}})
    for (const int restart : {0, 3})
      for (const bool optimised : {false, true})
        for (const int quality : {30, 97})
          all.push_back({.name = std::to_string(all.size()),
                         .width = 40 + 37 * static_cast<int>(all.size() % 5),
                         .height = 150 - 29 * static_cast<int>(all.size() % 4),
                         .channels = channels,
                         .h = h,
                         .v = v,
                         .restart = restart,
                         .quality = quality,
                         .optimised = optimised});
  all.push_back({.name = "long rows", .width = 1003, .height = 97, .quality = 98});
  all.push_back({.name = "one MCU", .width = 8, .height = 5});
  return all;
}

struct Image {
  explicit Image(const JpegKind& kind) : bytes(encode(kind)), frame(*ReadHeader(bytes).frame()) {}
  EncodedBytes bytes;  // the frame's scan refers to these bytes
  Frame frame;
};

Box random_box(const Frame& frame, std::mt19937& random) {
  const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  const int width = 1 + below(frame.width), height = 1 + below(frame.height);
  return {below(frame.width - width + 1), below(frame.height - height + 1), width, height};
}

class BaselineTurns : public testing::TestWithParam<const Kernels*> {};

TEST_P(BaselineTurns, GiveEachImageItsPixels) {
  std::mt19937 random(20261122);
  std::vector<Image> images;
  const auto all = kinds();
  images.reserve(all.size());
  for (const JpegKind& kind : all) images.emplace_back(kind);
  BaselineDecoder first(*GetParam()), second(*GetParam()), alone(*GetParam());
  for (std::size_t i = 0; i < images.size(); ++i)
    for (const std::size_t step : {0, 1, 5, 16, 33}) {
      const std::size_t other = (i + step) % images.size();
      const std::array<const Frame*, 2> frames{&images[i].frame, &images[other].frame};
      std::array<Box, 2> boxes;
      std::array<memory::PixelBuffer, 2> out;
      for (std::size_t k = 0; k < 2; ++k) {
        boxes[k] = random_box(*frames[k], random);
        ASSERT_TRUE(out[k].resize(boxes[k].width, boxes[k].height, 3));
      }
      const auto decoded = BaselineDecoder::decode_in_turn(first, {frames[0], boxes[0], ColorMode::kRgb, &out[0]},
                                                           second, {frames[1], boxes[1], ColorMode::kRgb, &out[1]});
      for (std::size_t k = 0; k < 2; ++k) {
        ASSERT_TRUE(decoded[k]) << all[i].name << " and " << all[other].name << ", " << k;
        ASSERT_EQ(packed(out[k]), decoded_by(alone, *frames[k], boxes[k], ColorMode::kRgb))
            << all[i].name << " and " << all[other].name << ", " << k;
      }
    }
}

// Wherever the damaged image is truncated, its decoding must fail and the other image must be decoded; both decoders
// must be usable afterwards.
TEST_P(BaselineTurns, DamageStaysWithItsImage) {
  const Image good({.name = "good", .width = 149, .height = 83}), whole({.name = "cut", .width = 120, .height = 99});
  BaselineDecoder first(*GetParam()), second(*GetParam()), alone(*GetParam());
  const Box good_box{3, 5, 140, 70}, whole_box{0, 0, 120, 99};
  const auto good_pixels = decoded_by(alone, good.frame, good_box, ColorMode::kRgb);
  const auto whole_pixels = decoded_by(alone, whole.frame, whole_box, ColorMode::kRgb);
  memory::PixelBuffer out, other;
  ASSERT_TRUE(out.resize(good_box.width, good_box.height, 3) && other.resize(whole_box.width, whole_box.height, 3));
  const BaselineDecoder::Task task{&good.frame, good_box, ColorMode::kRgb, &out};
  for (std::size_t bytes = 0; bytes < whole.frame.scan.size(); bytes += 41 * base::stride(5)) {
    Frame cut = whole.frame;
    cut.scan = cut.scan.first(bytes);
    const auto after = BaselineDecoder::decode_in_turn(first, task, second, {&cut, whole_box, ColorMode::kRgb, &other});
    ASSERT_TRUE(after[0] && !after[1]) << bytes;
    ASSERT_EQ(packed(out), good_pixels) << bytes;
    const auto before =
        BaselineDecoder::decode_in_turn(second, {&cut, whole_box, ColorMode::kRgb, &other}, first, task);
    ASSERT_TRUE(!before[0] && before[1]) << bytes;
    ASSERT_EQ(packed(out), good_pixels) << bytes;
  }
  ASSERT_EQ(decoded_by(second, whole.frame, whole_box, ColorMode::kRgb), whole_pixels);
}

INSTANTIATE_TEST_SUITE_P(All, BaselineTurns, testing::ValuesIn(all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

// Tests the decoder that selects the codec, with JPEGs that Feedline's decoder supports, JPEGs that need libjpeg, and
// damaged JPEGs.
TEST(ImagesInTurn, HaveTheResultsThatTheyHaveAlone) {
  EncodedBytes cut = encode({.width = 90, .height = 70});
  cut.resize(cut.size() / 2);
  EncodedBytes long_end = encode({.width = 64, .height = 64});
  long_end.resize(long_end.size() - 2);
  const std::vector<EncodedBytes> files{encode({.width = 61, .height = 47}), encode({.progressive = true}), cut,
                                        long_end};
  ImageDecoder first, second, alone;
  memory::PixelBuffer first_out, second_out, expected;
  const auto expect_alone = [&](const EncodedBytes& file, const Result<void>& result, const memory::PixelBuffer& got) {
    const auto header = alone.open(file);
    ASSERT_TRUE(header);
    const auto decoded = alone.decode({0, 0, header->width, header->height}, ColorMode::kRgb, expected);
    ASSERT_EQ(result.has_value(), decoded.has_value());
    if (decoded)
      EXPECT_EQ(packed(got), packed(expected));
    else
      EXPECT_EQ(result.error().what, decoded.error().what);
  };
  for (const EncodedBytes& a : files)
    for (const EncodedBytes& b : files) {
      const auto one = first.open(a), two = second.open(b);
      ASSERT_TRUE(one && two);
      const auto results =
          ImageDecoder::decode_in_turn(first, {{0, 0, one->width, one->height}, ColorMode::kRgb, &first_out}, second,
                                       {{0, 0, two->width, two->height}, ColorMode::kRgb, &second_out});
      expect_alone(a, results[0], first_out);
      expect_alone(b, results[1], second_out);
    }
}

}  // namespace
}  // namespace feedline::decode::baseline
