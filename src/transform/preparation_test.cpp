// SPDX-License-Identifier: Apache-2.0
#include "transform/preparation.h"

#include <gtest/gtest.h>

#include <cstring>

#include "transform/kernels/test_images.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

memory::PixelView cropped(memory::PixelView view, const Box& box) {
  view.data = view.row(box.top) + box.left * view.channels;
  view.width = box.width;
  view.height = box.height;
  return view;
}

// Returns the output of a chain for an image that is completely decoded.
std::vector<std::byte> made(const Chain& chain, memory::PixelView image, const base::SampleKey& key) {
  Drawing drawing;
  Workspace workspace;
  std::vector<std::byte> row(chain.output().bytes());
  EXPECT_TRUE(chain.draw({image.height, image.width}, key, drawing));
  EXPECT_TRUE(chain.apply(drawing, cropped(image, drawing.region), workspace, {row.data(), chain.output()}));
  return row;
}

TestImage prepared(const Preparation& preparation, const TestImage& image) {
  Drawing drawing;
  Workspace workspace;
  const auto size = preparation.draw({image.height, image.width}, drawing);
  EXPECT_TRUE(size) << size.error().message();
  TestImage out{size->width, size->height, preparation.channels(), {}};
  out.pixels.resize(static_cast<std::size_t>(out.width * out.height * out.channels));
  EXPECT_TRUE(preparation.apply(drawing, cropped(image.view(), drawing.region), *size, workspace,
                                std::as_writable_bytes(std::span(out.pixels))));
  return out;
}

struct Split {
  std::vector<Operation> before, after;
};

std::vector<Split> splits() {
  const op::RandomResizedCrop crop{{17, 13}};
  const op::RandomHorizontalFlip flip{0.5};
  const op::Normalize normalize{{0.4f, 0.5f, 0.6f}, {0.2f, 0.3f, 0.1f}};
  const op::Resize edge{{24, 0}, {}, Interpolation::kBilinear};
  return {
      {{}, {crop, flip, normalize}},
      {{op::Decode{ColorMode::kRgb}}, {flip, crop, normalize}},
      {{edge}, {crop, flip, normalize}},
      {{edge}, {op::RandomCrop{{16, 16}}, op::ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0.5, 1.5}, {-0.1, 0.1}}}},
      {{edge, op::CenterCrop{{22, 22}}}, {op::RandomVerticalFlip{0.5}, crop}},
      {{op::Resize{{30, 19}, {}, Interpolation::kBicubic}}, {op::CenterCrop{{16, 16}}}},
      {{op::Pad{{3, 1, 4, 2}, {9, 8, 7}, PaddingMode::kConstant}}, {crop, normalize}},
      {{op::Grayscale{1}}, {crop, flip}},
      {{op::Grayscale{3}, edge}, {crop, flip, normalize}},
      {{op::Resize{{20, 20}, {}, Interpolation::kBilinear}}, {}},
  };
}

TEST(PreparationTest, WhatIsDoneOnceAndTheRestGiveTheBitsOfTheWholeChain) {
  for (const Split& split : splits()) {
    std::vector<Operation> all = split.before;
    all.insert(all.end(), split.after.begin(), split.after.end());
    const auto preparation = Preparation::compile(split.before);
    const auto whole = Chain::compile(all, {}, Layout::kNchw);
    const auto rest = Chain::compile_rest(all, split.before.size(), {}, Layout::kNchw);
    ASSERT_TRUE(preparation && whole && rest);
    for (const auto& [width, height] : {std::pair{61, 37}, {29, 50}, {24, 24}}) {
      const TestImage image = test_image(width, height, 3, static_cast<std::uint32_t>(width * 2));
      const TestImage cached = prepared(**preparation, image);
      for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
        const base::SampleKey key{7, epoch, 3};
        EXPECT_EQ(made(**whole, image.view(), key), made(**rest, cached.view(), key))
            << (*preparation)->description() << " of " << width << " x " << height << ", epoch " << epoch;
      }
    }
  }
}

TEST(PreparationTest, OperationsOnWhatIsKeptDrawWhatTheyDrawInTheWholeChain) {
  const std::vector<Operation> all{op::Resize{{24, 0}, {}, Interpolation::kBilinear}, op::RandomResizedCrop{{8, 8}},
                                   op::RandomHorizontalFlip{0.5}};
  const auto whole = Chain::compile(all, {}, Layout::kNchw);
  const auto rest = Chain::compile_rest(all, 1, {}, Layout::kNchw);
  ASSERT_TRUE(whole && rest);
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    Drawing one, other;
    ASSERT_TRUE((*whole)->draw({48, 60}, {1, 2, sample}, one));
    ASSERT_TRUE((*rest)->draw({24, 30}, {1, 2, sample}, other));
    const auto first = (*whole)->values(one), second = (*rest)->values(other);
    ASSERT_EQ(first.size(), second.size() + 1);  // the size after resize
    for (std::size_t i = 0; i < second.size(); ++i) {
      EXPECT_EQ(first[i + 1].operation, second[i].operation);
      EXPECT_EQ(first[i + 1].values, second[i].values);
    }
  }
}

TEST(PreparationTest, WhatWouldBeTheSameInEveryEpochIsRefused) {
  const auto refused = [](Operation operation) {
    const std::vector<Operation> operations{std::move(operation)};
    const auto preparation = Preparation::compile(operations);
    return preparation ? std::string() : preparation.error().what;
  };
  EXPECT_NE(refused(op::RandomResizedCrop{{8, 8}}).find("place random_resized_crop after cache"), std::string::npos);
  EXPECT_NE(refused(op::RandomCrop{{8, 8}}), "");
  EXPECT_NE(refused(op::RandomHorizontalFlip{}), "");
  EXPECT_NE(refused(op::RandomVerticalFlip{}), "");
  EXPECT_NE(refused(op::ColorJitter{}), "");
  EXPECT_NE(refused(op::Normalize{{0.5f}, {0.5f}}).find("8-bit"), std::string::npos);
  EXPECT_NE(refused(op::ToDtype{DType::kFloat32, true}), "");
  EXPECT_EQ(refused(op::CenterCrop{{8, 8}}), "");
}

TEST(PreparationTest, TheDescriptionSaysEverythingThatPixelsDependOn) {
  const auto described = [](std::vector<Operation> operations) {
    return (*Preparation::compile(operations))->description();
  };
  EXPECT_EQ(described({}), described({op::Decode{ColorMode::kRgb}}));
  EXPECT_NE(described({}), described({op::Decode{ColorMode::kL}}));
  const std::vector<Operation> small{op::Resize{{256, 0}, {}, Interpolation::kBilinear}};
  const std::string now = described(small);
  EXPECT_NE(now, described({op::Resize{{255, 0}, {}, Interpolation::kBilinear}}));
  EXPECT_NE(now, described({op::Resize{{256, 0}, {}, Interpolation::kBicubic}}));
  ASSERT_TRUE(follow_pillow(12));
  EXPECT_NE(now, described(small));
  ASSERT_TRUE(follow_pillow(13));
}

}  // namespace
}  // namespace feedline::transform
