// SPDX-License-Identifier: Apache-2.0

// Tests how operation chains draw random values for erasing, blur, mixing and nested operations, and apply them.
// tests/python/test_random_operations.py compares the effect of these operations on photos with Pillow and torchvision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "transform/augment/sampling.h"
#include "transform/chain.h"
#include "transform/kernels/pixel_ops/normals.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pointwise.h"
#include "transform/kernels/test_images.h"
#include "transform/kernels/variants.h"
#include "transform/noise.h"
#include "transform/operation/inference.h"
#include "transform/preparation.h"
#include "transform/targets/label_chain.h"

namespace feedline::transform {
namespace {

using Noise = op::RandomErasing::Noise;
using Operations = std::vector<Operation>;

constexpr int kWidth = 37, kHeight = 29;

// Returns the row of the batch that a chain makes from the test image.
template <typename T>
std::vector<T> row_of(const Operations& operations, base::SampleKey key, std::optional<DType> dtype = {},
                      Layout layout = Layout::kNchw) {
  Operations all = operations;
  const auto chain = Chain::compile(all, dtype, layout, Chain::OutputSize::kAny);
  EXPECT_TRUE(chain.has_value()) << chain.error().what;
  Drawing drawing;
  Workspace workspace;
  EXPECT_TRUE((*chain)->draw({kHeight, kWidth}, key, drawing));
  const TestImage image = test_image(kWidth, kHeight, 3, 5);
  memory::PixelView region = image.view();
  region.data = region.row(drawing.region.top) + drawing.region.left * 3;
  region.width = drawing.region.width;
  region.height = drawing.region.height;
  ArraySpec spec = (*chain)->output();
  const auto [height, width] = drawing.size;
  spec.shape = layout == Layout::kNchw ? Shape{3, height, width} : Shape{height, width, 3};
  std::vector<T> row(static_cast<std::size_t>(width * height * 3));
  EXPECT_EQ(spec.bytes(), row.size() * sizeof(T));
  EXPECT_TRUE((*chain)->apply(drawing, region, workspace, {reinterpret_cast<std::byte*>(row.data()), spec}));
  return row;
}

std::vector<DrawnValue> drawn(const Operations& operations, base::SampleKey key) {
  const auto chain = Chain::compile(operations, {}, Layout::kNchw, Chain::OutputSize::kAny);
  EXPECT_TRUE(chain.has_value()) << chain.error().what;
  Drawing drawing;
  EXPECT_TRUE((*chain)->draw({kHeight, kWidth}, key, drawing));
  return (*chain)->values(drawing);
}

std::string refusal(const Operations& operations) {
  const auto inferred = infer(operations);
  return inferred ? "" : inferred.error().what;
}

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "'" << text << "' does not say '" << words << "'";
}

TEST(Normals, AreStandardNormal) {
  std::vector<float> numbers(kGroupNormals * 20000);
  kScalarPixelKernels.normals(base::Random({1, 2, 3}, 4).blocks(0), 20000, numbers.data());
  // neighbours, both numbers of a pair, and their squares must be uncorrelated
  for (const std::size_t apart : {std::size_t{1}, kGroupBlocks, 2 * kGroupBlocks, kGroupNormals}) {
    double product = 0, squares = 0;
    const std::size_t count = numbers.size() - apart;
    for (std::size_t i = 0; i < count; ++i) {
      const double a = numbers[i], b = numbers[i + apart];
      product += a * b;
      squares += (a * a - 1) * (b * b - 1) / 2;
    }
    EXPECT_LT(std::abs(product) / std::sqrt(static_cast<double>(count)), 4.5) << apart;
    EXPECT_LT(std::abs(squares) / std::sqrt(static_cast<double>(count)), 4.5) << apart;
  }
  std::ranges::sort(numbers);
  double farthest = 0;  // Kolmogorov's distance
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double below = 0.5 * std::erfc(-double{numbers[i]} / std::numbers::sqrt2);
    farthest =
        std::max(farthest, std::abs(below - (static_cast<double>(i) + 0.5) / static_cast<double>(numbers.size())));
  }
  EXPECT_LT(farthest * std::sqrt(static_cast<double>(numbers.size())), 1.95);  // one in a thousand
  EXPECT_LT(numbers.back(), 6.6f);
  EXPECT_GT(numbers.back(), 4.2f);
}

TEST(Normals, HaveTheExtremesThatTheirWordsHave) {
  EXPECT_EQ(normals::of_words(~0u, 5).first, 0.0f);  // the radius at 1
  const auto [far, near] = normals::of_words(0, 1u << 29);
  EXPECT_NEAR(far, std::sqrt(62 * std::numbers::ln2), 1e-5);
  EXPECT_EQ(near, 0.0f);
}

TEST(RandomErasing, WritesOverTheFinishedRowWhateverItsForm) {
  const Operations plain{op::Normalize{{0.4f, 0.5f, 0.6f}, {0.2f, 0.3f, 0.1f}}, op::RandomHorizontalFlip{1}};
  for (const bool noise : {false, true}) {
    const op::RandomErasing erasing{
        .p = 1, .value = {1.5f, -2.0f, 0.25f}, .noise = noise ? Noise::kValues : Noise::kNone};
    const Operations erased{plain[0], erasing, plain[1]};
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
      const base::SampleKey key{3, 1, sample};
      const auto box = drawn(erased, key)[0].values;
      ASSERT_EQ(box.size(), 4u);
      const auto before = row_of<float>(plain, key), planes = row_of<float>(erased, key);
      const auto pixels = row_of<float>(erased, key, {}, Layout::kNhwc);
      const auto halves = row_of<std::uint16_t>(erased, key, DType::kFloat16, Layout::kNhwc);
      int same = 0;
      for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x)
          for (int c = 0; c < 3; ++c) {
            const auto plane = static_cast<std::size_t>((c * kHeight + y) * kWidth + x);
            const auto pixel = static_cast<std::size_t>((y * kWidth + x) * 3 + c);
            ASSERT_EQ(planes[plane], pixels[pixel]);
            ASSERT_EQ(to_half(planes[plane]), halves[pixel]);
            const int unflipped = kWidth - 1 - x;
            const bool inside =
                unflipped >= box[0] && unflipped < box[0] + box[2] && y >= box[1] && y < box[1] + box[3];
            if (!inside) {
              ASSERT_EQ(planes[plane], before[plane]) << x << " " << y;
            } else if (noise) {
              same += planes[plane] == before[plane];
            } else {
              ASSERT_EQ(planes[plane], erasing.value[static_cast<std::size_t>(c)]);
            }
          }
      EXPECT_LT(same, 3);
    }
  }
}

// Later operations read the rectangles.
TEST(RandomErasing, HasTheUnitsOfItsPlace) {
  const op::RandomErasing erasing{.p = 1, .value = {0.3f}};
  const op::Normalize normalize{{0.4f, 0.5f, 0.6f}, {0.2f, 0.3f, 0.1f}};
  const auto values_in = [&](const Operations& operations, std::optional<DType> dtype) {
    const base::SampleKey key{0, 0, 1};
    const auto box = drawn(operations, key).front().values;
    const auto at = static_cast<std::size_t>(box[1] * kWidth + box[0]);
    std::array<float, 3> found{};
    if (dtype == DType::kFloat16) {
      const auto row = row_of<std::uint16_t>(operations, key, dtype);
      for (std::size_t c = 0; c < 3; ++c) found[c] = from_half(row[at + c * kWidth * kHeight]);
    } else {
      const auto row = row_of<float>(operations, key, dtype);
      for (std::size_t c = 0; c < 3; ++c) found[c] = row[at + c * kWidth * kHeight];
    }
    return found;
  };
  const auto half = [](float value) { return from_half(to_half(value)); };
  const op::ToDtype floats{DType::kFloat32, true}, halves{DType::kFloat16, true};
  for (std::size_t c = 0; c < 3; ++c) {
    const float mean = normalize.mean[c], std = normalize.std[c];
    EXPECT_EQ(values_in({floats, erasing, normalize}, {})[c], (0.3f - mean) / std);
    EXPECT_EQ(values_in({floats, erasing, normalize}, DType::kFloat16)[c], half((0.3f - mean) / std));
    EXPECT_EQ(values_in({halves, erasing, normalize}, {DType::kFloat16})[c],
              half(half(half(0.3f) - half(mean)) / half(std)));
    EXPECT_EQ(values_in({halves, erasing}, {DType::kFloat32})[c], half(0.3f));
  }
}

TEST(RandomErasing, NoiseOfPixelsIsThatOfFloatsWithoutItsFraction) {
  const op::RandomErasing erasing{.p = 1, .noise = Noise::kValues};
  for (std::uint64_t sample = 0; sample < 10; ++sample) {
    const base::SampleKey key{0, 0, sample};
    const auto pixels = row_of<std::uint8_t>({op::RandomHorizontalFlip{0}, erasing}, key);
    const auto floats = row_of<float>({op::ToDtype{DType::kFloat32}, erasing}, key);
    for (std::size_t i = 0; i < pixels.size(); ++i)
      ASSERT_EQ(pixels[i], static_cast<std::uint8_t>(static_cast<int>(floats[i]))) << i;
  }
}

TEST(RandomErasing, AsTimmHasIt) {
  const op::RandomErasing colours{
      .p = 1, .ratio = {0.3, 1 / 0.3}, .noise = Noise::kColour, .count = {2, 4}, .is_timms = true};
  std::array<int, 5> counts{};
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    const base::SampleKey key{0, 0, sample};
    const Operations operations{op::ToDtype{DType::kFloat32}, colours};
    const auto boxes = drawn(operations, key);
    ++counts[boxes.size()];
    const auto row = row_of<float>(operations, key);
    const auto& box = boxes.back().values;
    for (std::size_t c = 0; c < 3; ++c)
      for (int y = 0; y < box[3]; ++y)
        for (int x = 0; x < box[2]; ++x)
          ASSERT_EQ(
              row[(c * kHeight + static_cast<std::size_t>(box[1] + y)) * kWidth + static_cast<std::size_t>(box[0] + x)],
              row[(c * kHeight + static_cast<std::size_t>(box[1])) * kWidth + static_cast<std::size_t>(box[0])]);
  }
  EXPECT_EQ(counts[0] + counts[1], 0);
  for (const std::size_t count : {2, 3, 4}) EXPECT_NEAR(counts[count], 100, 4 * std::sqrt(300.0 * 2 / 9));
}

// At the first level of nesting, operation c of an operation with stream s has stream s + ((c + 1) << 8); the next
// level uses << 16.
TEST(NestedOperations, DrawFromStreamsOfTheirOwn) {
  const op::RandomHorizontalFlip flip{0.5};
  const op::GaussianBlur blur{{3, 3}};
  const Operations operations{op::Resize{{20, 20}}, op::RandomApply{{flip, op::RandomApply{{flip, flip, blur}, 1}}, 1},
                              blur};
  int flips = 0;
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const base::SampleKey key{9, 2, sample};
    const auto values = drawn(operations, key);
    ASSERT_EQ(values.size(), 8u);
    const auto coin = [&](std::uint32_t stream) {
      base::Random random(key, stream);
      return draw_coin(0.5, random) ? 1.0 : 0.0;
    };
    const auto sigma = [&](std::uint32_t stream) { return base::Random(key, stream).uniform(0.1, 2.0); };
    EXPECT_EQ(values[2].values[0], coin(1 + (1 << 8)));
    EXPECT_EQ(values[4].values[0], coin(1 + (2 << 8) + (1 << 16)));
    EXPECT_EQ(values[5].values[0], coin(1 + (2 << 8) + (2 << 16)));
    EXPECT_EQ(values[6].values[0], sigma(1 + (2 << 8) + (3 << 16)));
    EXPECT_EQ(values[7].values[0], sigma(2));
    flips += values[4].values[0] > 0;
  }
  EXPECT_TRUE(flips > 10 && flips < 40);
}

TEST(NestedOperations, MoveMasksAsTheyMoveImages) {
  const Operations operations{op::RandomApply{{op::RandomCrop{{11, 13}}, op::RandomHorizontalFlip{}}},
                              op::RandomChoice{{{op::RandomVerticalFlip{1}}, {op::Pad{{1, 2, 3, 4}}}, {}}, {}},
                              op::RandomOrder{{op::RandomVerticalFlip{}, op::Pad{{2, 0, 1, 0}}}}};
  const auto labels = LabelChain::compile(operations);
  ASSERT_TRUE(labels.has_value());
  LabelDrawing mask;
  const TestImage image = test_image(kWidth, kHeight, 3, 5);
  for (std::uint64_t sample = 0; sample < 60; ++sample) {
    const base::SampleKey key{0, 0, sample};
    ASSERT_TRUE((*labels)->draw({kHeight, kWidth}, key, mask));
    const auto row = row_of<std::uint8_t>(operations, key, {}, Layout::kNhwc);
    ASSERT_EQ(row.size(), mask.columns.size() * mask.rows.size() * 3);
    std::size_t at = 0;
    for (const int y : mask.rows)
      for (const int x : mask.columns)
        for (int c = 0; c < 3; ++c) ASSERT_EQ(row[at++], x < 0 || y < 0 ? 0 : image.view().row(y)[3 * x + c]) << sample;
  }
}

TEST(NestedOperations, SizesAreFollowed) {
  const op::RandomResizedCrop crop{{16, 16}}, other{{8, 8}};
  const op::Resize resize{{16, 16}};
  const auto size = [](const Operations& operations) {
    const auto inferred = infer(operations);
    EXPECT_TRUE(inferred.has_value()) << inferred.error().what;
    return inferred->size ? inferred->size->width : 0;
  };
  EXPECT_EQ(size({resize, op::RandomApply{{crop}}}), 16);
  EXPECT_EQ(size({resize, op::RandomApply{{other}}}), 0);
  EXPECT_EQ(size({resize, op::RandomApply{{other}, 1}}), 8);
  EXPECT_EQ(size({resize, op::RandomApply{{other}, 0}}), 16);
  EXPECT_EQ(size({resize, op::RandomApply{{other}}, resize}), 16);
  EXPECT_EQ(size({op::RandomApply{{crop}}}), 0);
  EXPECT_EQ(size({op::RandomChoice{{{crop}, {resize}}, {}}}), 16);
  EXPECT_EQ(size({op::RandomChoice{{{crop}, {other}}, {}}}), 0);
  EXPECT_EQ(size({op::RandomChoice{{{crop}, {other}}, {1, 0}}}), 16);
  EXPECT_EQ(size({op::RandomOrder{{op::RandomHorizontalFlip{}, resize, op::RandomChange{Augmentation::kGrayscale}}}}),
            16);
  EXPECT_EQ(size({resize, op::RandomOrder{{op::Pad{{1, 1, 1, 1}}, resize}}}), 0);
  const auto chain = Chain::compile(Operations{resize, op::RandomApply{{other}}}, {}, Layout::kNchw);
  ASSERT_FALSE(chain.has_value());
  expect_says(chain.error().what, "it varies after random_apply");
}

TEST(NestedOperations, WhatCannotStandInThemIsNamed) {
  const op::RandomHorizontalFlip flip{};
  const auto nested = [](Operation operation) { return Operations{op::RandomApply{{std::move(operation)}}}; };
  expect_says(refusal(nested(op::Normalize{{0.f}, {1.f}})), "random_apply: normalize: the type of");
  expect_says(refusal(nested(op::Decode{})), "random_apply: decode: must be the first");
  expect_says(refusal(nested(op::Grayscale{1})), "random_apply: the outcomes have 1 and 3 channels");
  expect_says(refusal(nested(op::RandomOrder{{op::RandomApply{{flip}}}})), "at most 2 levels deep");
  EXPECT_EQ(refusal(nested(op::RandomOrder{{flip}})), "");
  expect_says(refusal({op::RandomApply{Operations(255, flip)}}), "at most 254 operations");
  expect_says(refusal({op::RandomChoice{{{flip}}, {0}}}), "p must have a number above 0");
  expect_says(refusal({op::RandomChoice{{{flip}}, {1, 2}}}), "1 chains but 2 numbers in p");
  expect_says(refusal({op::RandomApply{{flip}, 1.5}}), "random_apply: p must be between 0 and 1");
  expect_says(refusal({op::TimmAugment{.config = "rand-m9"}}), "create it with timm_augment()");
  const Operations automatic = nested(op::TrivialAugmentWide{});
  EXPECT_FALSE(LabelChain::compile(automatic).has_value());
  EXPECT_FALSE(Preparation::compile(automatic).has_value());
}

}  // namespace
}  // namespace feedline::transform
