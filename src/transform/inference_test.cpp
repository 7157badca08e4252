// SPDX-License-Identifier: Apache-2.0
#include "transform/operation/inference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "transform/chain.h"

namespace feedline::transform {
namespace {

using Operations = std::vector<Operation>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string refusal(const Operations& operations, std::optional<DType> dtype = {}) {
  const auto chain = Chain::compile(operations, dtype, Layout::kNchw);
  if (chain) return "accepted";
  EXPECT_EQ(chain.error().code, ErrorCode::kConfig);
  return chain.error().what;
}

ArraySpec spec(const Operations& operations, std::optional<DType> dtype = {}, Layout layout = Layout::kNchw) {
  const auto chain = Chain::compile(operations, dtype, layout);
  EXPECT_TRUE(chain) << chain.error().message();
  return (*chain)->output();
}

struct Refused {
  Operations operations;
  std::string starts, holds;
};

TEST(Inference, NamesTheOperationAndWhatIsWrong) {
  const op::CenterCrop crop{{8, 8}};
  const Refused cases[] = {
      {{op::RandomResizedCrop{{224, 224}, {0.5, 0.1}}},
       "random_resized_crop: scale must be two numbers 0 < low <= high, got (0.5, 0.1)",
       ""},
      {{op::RandomResizedCrop{{224, 224}, {0, 1}}}, "random_resized_crop: scale", "(0, 1)"},
      {{op::RandomResizedCrop{{224, 224}, {kNan, 1}}}, "random_resized_crop: scale", "nan"},
      {{op::RandomResizedCrop{{224, 224}, {0.1, 1}, {2, 1}}}, "random_resized_crop: ratio", "(2, 1)"},
      {{op::RandomResizedCrop{{0, 224}}}, "random_resized_crop: size", "(0, 224)"},
      {{op::CenterCrop{{8, -1}}}, "center_crop: size", "(8, -1)"},
      {{op::RandomCrop{{1 << 21, 1}}}, "random_crop: size", ""},
      {{op::Resize{{60'000, 60'000}}}, "resize: size", "60000"},
      {{op::Resize{{8, 8}, 9}}, "resize: max_size needs an int size", ""},
      {{op::Resize{{8, 0}, 8}, crop}, "resize: max_size must be greater", "8"},
      {{crop, op::RandomHorizontalFlip{1.5}}, "random_horizontal_flip: p must be between 0 and 1, got 1.5", ""},
      {{crop, op::RandomVerticalFlip{kNan}}, "random_vertical_flip: p", ""},
      {{crop, op::Pad{{1, -2, 0, 0}}}, "pad: padding", "-2"},
      {{crop, op::Grayscale{2}}, "grayscale: num_output_channels must be 1 or 3, got 2", ""},
      {{crop, op::ColorJitter{{-0.1, 1}}}, "color_jitter: brightness", "(-0.1, 1)"},
      {{crop, op::ColorJitter{{1, 1}, {1, 1}, {1, 1}, {-0.6, 0}}}, "color_jitter: hue", "<= 0.5"},
      {{crop, op::Normalize{{1}, {1, 1, 1, 1}}}, "normalize: 3 channels but 4 numbers in std", ""},
      {{crop, op::Grayscale{1}, op::Normalize{{1, 1, 1}, {1}}}, "normalize: 1 channel but 3 numbers in mean", ""},
      {{crop, op::Normalize{{0}, {0}}}, "normalize: std must not be 0", ""},
      {{crop, op::ToDtype{DType::kFloat16}, op::Normalize{{0}, {1e-9f}}}, "normalize: std must not be 0", "float16"},
      {{crop, op::Normalize{{INFINITY}, {1}}}, "normalize: mean must be finite", ""},
      {{crop, op::ToDtype{DType::kInt64}}, "to_dtype: int64", ""},
      {{crop, op::ToDtype{DType::kFloat32}, op::ToDtype{DType::kUint8}}, "to_dtype: the image is float32", "uint8"},
      {{op::Normalize{{0}, {1}}, crop}, "center_crop: works on uint8 pixels", "before normalize"},
      {{op::ToDtype{DType::kFloat16}, op::Resize{{8, 8}}}, "resize: works on uint8 pixels", "float16"},
      {{crop, op::Decode{}}, "decode: must be the first operation", ""},
      {{crop, op::RandomCrop{{9, 8}}}, "random_crop: the crop of 9 x 8 is larger", "8 x 8"},
      {{op::RandomHorizontalFlip{}}, "the chain has no fixed output size", "resize((height, width))"},
      {{op::Resize{{8, 0}}}, "the chain has no fixed output size", ""},
      {{}, "the chain has no fixed output size", ""},
  };
  for (const Refused& c : cases) {
    const std::string what = refusal(c.operations);
    EXPECT_EQ(what.substr(0, c.starts.size()), c.starts);
    EXPECT_NE(what.find(c.holds), std::string::npos) << what;
  }
  EXPECT_EQ(refusal({crop}, DType::kInt64).substr(0, 6), "dtype:");
  EXPECT_EQ(refusal({crop, op::Normalize{{0}, {1}}}, DType::kUint8).substr(0, 6), "dtype:");
}

TEST(Inference, FollowsShapesAndTypes) {
  const op::RandomResizedCrop crop{{10, 20}};
  EXPECT_EQ(spec({crop}), (ArraySpec{DType::kUint8, {3, 10, 20}}));
  EXPECT_EQ(spec({crop}, {}, Layout::kNhwc), (ArraySpec{DType::kUint8, {10, 20, 3}}));
  EXPECT_EQ(spec({crop, op::Pad{{1, 2, 3, 4}}}), (ArraySpec{DType::kUint8, {3, 16, 24}}));
  EXPECT_EQ(spec({crop, op::Resize{{5, 0}}}), (ArraySpec{DType::kUint8, {3, 5, 10}}));
  EXPECT_EQ(spec({op::Decode{ColorMode::kL}, crop}), (ArraySpec{DType::kUint8, {1, 10, 20}}));
  EXPECT_EQ(spec({crop, op::Grayscale{1}}), (ArraySpec{DType::kUint8, {1, 10, 20}}));
  EXPECT_EQ(spec({op::Decode{ColorMode::kL}, crop, op::Grayscale{3}}), (ArraySpec{DType::kUint8, {3, 10, 20}}));
  EXPECT_EQ(spec({crop, op::Normalize{{0.5f}, {0.5f}}}).dtype, DType::kFloat32);
  EXPECT_EQ(spec({crop, op::ToDtype{DType::kFloat16}}).dtype, DType::kFloat16);
  EXPECT_EQ(spec({crop}, DType::kFloat32).dtype, DType::kFloat32);
  EXPECT_EQ(spec({crop, op::Normalize{{0.5f}, {0.5f}}}, DType::kFloat16).dtype, DType::kFloat16);
  EXPECT_EQ(spec({crop, op::Normalize{{0.5f}, {0.5f}}, op::RandomHorizontalFlip{}}).dtype, DType::kFloat32);
}

TEST(Inference, ChecksPartsOfAChain) {
  EXPECT_TRUE(Chain::check({}));
  EXPECT_TRUE(Chain::check(Operations{op::RandomHorizontalFlip{}}));
  EXPECT_FALSE(Chain::check(Operations{op::RandomHorizontalFlip{-1}}));
}

TEST(Operations, HaveNamesAndDescriptions) {
  EXPECT_EQ(describe(op::RandomResizedCrop{{224, 224}}),
            "random_resized_crop(224, 224, scale=(0.08, 1), ratio=(0.75, 1.3333333333333333))");
  EXPECT_EQ(describe(op::Resize{{256, 0}, 300, Interpolation::kBicubic}),
            "resize(256, max_size=300, interpolation=bicubic)");
  EXPECT_EQ(describe(op::Resize{{256, 128}}), "resize((256, 128))");
  EXPECT_EQ(describe(op::RandomCrop{{32, 32}, {4, 4, 4, 4}, false, {}, PaddingMode::kReflect}),
            "random_crop(32, 32, padding=(4, 4, 4, 4), padding_mode=reflect)");
  EXPECT_EQ(describe(op::Pad{{1, 2, 3, 4}, {9, 9, 9}}), "pad((1, 2, 3, 4), fill=9)");
  EXPECT_EQ(describe(op::Normalize{{0.485f}, {0.5f}}), "normalize(mean=(0.485,), std=(0.5,))");
  EXPECT_EQ(describe(op::ToDtype{DType::kFloat16, true}), "to_dtype(float16, scale=True)");
  EXPECT_EQ(describe(op::RandomHorizontalFlip{}), "random_horizontal_flip(p=0.5)");
  EXPECT_EQ(name_of(op::ColorJitter{}), "color_jitter");
  EXPECT_EQ(name_of(op::Decode{}), "decode");
}

}  // namespace
}  // namespace feedline::transform
