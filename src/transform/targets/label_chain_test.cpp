// SPDX-License-Identifier: Apache-2.0
#include "transform/targets/label_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "transform/chain.h"

namespace feedline::transform {
namespace {

using Labels = std::vector<std::vector<int>>;

// All labels are different, up to 250.
memory::PixelBuffer numbered(int width, int height) {
  memory::PixelBuffer mask;
  EXPECT_TRUE(mask.resize(width, height, 1));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) mask.row(y)[x] = static_cast<std::uint8_t>(1 + (y * width + x) % 250);
  return mask;
}

Labels rows_of(const std::vector<std::byte>& bytes, Size size) {
  Labels rows(static_cast<std::size_t>(size.height));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    rows[i / static_cast<std::size_t>(size.width)].push_back(std::to_integer<int>(bytes[i]));
  return rows;
}

Labels moved(std::vector<Operation> operations, const memory::PixelBuffer& mask, base::SampleKey key = {1, 2, 3}) {
  const auto chain = LabelChain::compile(std::move(operations));
  EXPECT_TRUE(chain) << chain.error().message();
  LabelDrawing drawing;
  const auto drawn = (*chain)->draw({mask.height(), mask.width()}, key, drawing);
  EXPECT_TRUE(drawn) << drawn.error().message();
  const Size size = drawing.size();
  std::vector<std::byte> out(static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width));
  LabelChain::apply(drawing, mask.view(), out.data());
  return rows_of(out, size);
}

TEST(LabelChain, ResizesAsTorchsNearest) {
  const auto mask = numbered(7, 5);
  for (const Size size : {Size{3, 4}, Size{10, 15}, Size{5, 7}, Size{1, 1}, Size{224, 223}}) {
    const Labels out = moved({op::Resize{size, {}, Interpolation::kBilinear}}, mask);
    for (int y = 0; y < size.height; ++y)
      for (int x = 0; x < size.width; ++x) {
        const auto from = [](int i, int in, int to) {
          return std::min(
              static_cast<int>(std::floor(static_cast<float>(i) * (static_cast<float>(in) / static_cast<float>(to)))),
              in - 1);
        };
        ASSERT_EQ(out[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)],
                  mask.row(from(y, 5, size.height))[from(x, 7, size.width)]);
      }
  }
}

TEST(LabelChain, BordersAreZeroWhateverTheFill) {
  const auto mask = numbered(2, 2);
  EXPECT_EQ(moved({op::Pad{{1, 0, 2, 1}, {9, 9, 9}, PaddingMode::kConstant}}, mask),
            (Labels{{0, 1, 2, 0, 0}, {0, 3, 4, 0, 0}, {0, 0, 0, 0, 0}}));
  EXPECT_EQ(moved({op::Pad{{1, 1, 1, 1}, {}, PaddingMode::kReflect}}, mask),
            (Labels{{4, 3, 4, 3}, {2, 1, 2, 1}, {4, 3, 4, 3}, {2, 1, 2, 1}}));
  EXPECT_EQ(moved({op::CenterCrop{{4, 2}}}, mask), (Labels{{0, 0}, {1, 2}, {3, 4}, {0, 0}}));
}

// A grey image whose pixels are the labels of the mask: if no operation mixes pixels, both outputs must be equal.
TEST(LabelChain, IsDrawnAsTheImageIs) {
  const auto mask = numbered(40, 30);
  const std::vector<Operation> operations{op::Decode{ColorMode::kL},
                                          op::RandomHorizontalFlip{},
                                          op::RandomCrop{{20, 24}, {2, 1, 3, 2}, false, {}, PaddingMode::kSymmetric},
                                          op::RandomVerticalFlip{},
                                          op::Pad{{1, 2, 3, 4}, {}, PaddingMode::kEdge},
                                          op::CenterCrop{{18, 19}},
                                          op::RandomCrop{{25, 21}, {}, true, {}, PaddingMode::kConstant}};
  const auto chain = Chain::compile(operations, {}, Layout::kNhwc);
  ASSERT_TRUE(chain) << chain.error().message();
  Drawing drawing;
  Workspace workspace;
  std::vector<std::byte> out((*chain)->output().bytes());
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const base::SampleKey key{7, 1, sample};
    ASSERT_TRUE((*chain)->draw({30, 40}, key, drawing));
    memory::PixelView region = mask.view();
    region.data = region.row(drawing.region.top) + drawing.region.left;
    region.width = drawing.region.width;
    region.height = drawing.region.height;
    ASSERT_TRUE((*chain)->apply(drawing, region, workspace, {out.data(), (*chain)->output()}));
    ASSERT_EQ(moved(operations, mask, key), rows_of(out, {25, 21})) << sample;
  }
}

TEST(LabelChain, ColourAndNumbersLeaveLabelsAlone) {
  const auto mask = numbered(6, 4);
  EXPECT_EQ(
      moved({op::ColorJitter{{0.1, 0.2}, {1, 1}, {1, 1}, {0, 0}}, op::Grayscale{3}, op::Normalize{{0.5F}, {0.2F}}},
            mask),
      moved({}, mask));
}

TEST(LabelChain, WideLabelsMoveWhole) {
  memory::PixelBuffer mask;
  ASSERT_TRUE(mask.resize(3, 1, 2));
  const std::uint16_t labels[] = {1, 0x1234, 65535};
  std::memcpy(mask.row(0), labels, sizeof labels);
  const auto chain = LabelChain::compile({op::RandomHorizontalFlip{1.0}});
  LabelDrawing drawing;
  ASSERT_TRUE((*chain)->draw({1, 3}, {}, drawing));
  std::uint16_t out[3];
  LabelChain::apply(drawing, mask.view(), reinterpret_cast<std::byte*>(out));
  EXPECT_EQ(out[0], 65535);
  EXPECT_EQ(out[1], 0x1234);
  EXPECT_EQ(out[2], 1);
}

// Compares running the operations of a list together with running them one after another at their own positions.
TEST(LabelChain, WarpsAndTheRestFollowOneAnother) {
  const std::vector<Operation> operations{
      op::RandomHorizontalFlip{1.0},
      op::RandomRotation{.degrees = {-30, 60}, .expand = true},
      op::Pad{{2, 0, 1, 3}, {9, 9, 9}, PaddingMode::kConstant},
      op::RandomAffine{.degrees = {-20, 20}, .translate = {{0.1, 0.2}}, .scale = {{0.7, 1.4}}},
      op::RandomCrop{{28, 30}},
      op::RandomPerspective{0.4, 0.7},
      op::ElasticTransform{.alpha = {30, 20}},
      op::RandomVerticalFlip{},
      op::Letterbox{{40, 33}}};
  const auto mask = numbered(34, 29);
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    const base::SampleKey key{9, 2, sample};
    memory::PixelBuffer stepwise;
    ASSERT_TRUE(stepwise.resize(34, 29, 1));
    for (int y = 0; y < 29; ++y) std::memcpy(stepwise.row(y), mask.row(y), 34);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      std::vector<Operation> one(i, Operation{op::Skipped{}});
      one.push_back(operations[i]);
      const Labels labels = moved(one, stepwise, key);
      const int width = static_cast<int>(labels[0].size()), height = static_cast<int>(labels.size());
      ASSERT_TRUE(stepwise.resize(width, height, 1));
      for (int y = 0; y < height; ++y)
        std::ranges::transform(labels[static_cast<std::size_t>(y)], stepwise.row(y),
                               [](int label) { return static_cast<std::uint8_t>(label); });
    }
    ASSERT_EQ(moved(operations, mask, key), moved({}, stepwise)) << sample;
  }
}

TEST(LabelChain, TurnsByQuartersMoveEveryLabel) {
  const auto mask = numbered(3, 2);  // 1 2 3 / 4 5 6
  const auto turned = [&](double degrees) {
    return moved({op::RandomRotation{.degrees = {degrees, degrees}, .expand = true}}, mask);
  };
  EXPECT_EQ(turned(90), (Labels{{3, 6}, {2, 5}, {1, 4}}));
  EXPECT_EQ(turned(-90), (Labels{{4, 1}, {5, 2}, {6, 3}}));
  EXPECT_EQ(turned(180), (Labels{{6, 5, 4}, {3, 2, 1}}));
  EXPECT_EQ(turned(0), moved({}, mask));
}

TEST(LabelChain, WhatAWarpBringsFromOutsideIsZero) {
  const auto mask = numbered(4, 1);
  EXPECT_EQ(moved({op::RandomAffine{.degrees = {0, 0}, .scale = {{0.5, 0.5}}, .fill = {7, 7, 7}}}, mask)[0][0], 0);
  EXPECT_EQ(moved({op::RandomRotation{.degrees = {90, 90}, .fill = {7, 7, 7}}}, mask)[0][0], 0);
}

TEST(LabelChain, ACropThatDoesNotFitIsTheImagesError) {
  const auto chain = LabelChain::compile({op::RandomCrop{{9, 9}, {}, false, {}, PaddingMode::kConstant}});
  LabelDrawing drawing;
  const auto drawn = (*chain)->draw({4, 4}, {}, drawing);
  ASSERT_FALSE(drawn);
  EXPECT_NE(drawn.error().what.find("random_crop"), std::string::npos);
}

}  // namespace
}  // namespace feedline::transform
