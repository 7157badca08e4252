// SPDX-License-Identifier: Apache-2.0
#include "transform/targets/target_chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "transform/operation/field_operations.h"

namespace feedline::transform {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Size kImage{80, 100};

template <typename Number>
void set(TargetDrawing& drawing, const std::vector<Number>& numbers, std::size_t per_row) {
  drawing.rows.reset(std::is_same_v<Number, float> ? DType::kFloat32 : DType::kInt64, numbers.size() / per_row,
                     per_row);
  std::ranges::copy(numbers, drawing.rows.numbers<Number>().begin());
}

template <typename Number>
std::vector<Number> moved(TargetKind kind, const op::Boxes& boxes, std::vector<Operation> operations,
                          const std::vector<Number>& numbers, TargetDrawing& drawing) {
  const auto chain = TargetChain::compile(kind, boxes, std::move(operations));
  EXPECT_TRUE(chain) << chain.error().message();
  set(drawing, numbers, kind == TargetKind::kBoxes ? 4 : 2);
  IouCrops crops;
  EXPECT_TRUE((*chain)->apply(kImage, {1, 2, 3}, crops, drawing));
  const auto out = drawing.rows.numbers<Number>();
  return {out.begin(), out.end()};
}

template <typename Number>
std::vector<Number> boxes(const op::Boxes& what, std::vector<Operation> operations,
                          const std::vector<Number>& numbers) {
  TargetDrawing drawing;
  return moved(TargetKind::kBoxes, what, std::move(operations), numbers, drawing);
}

// The expected numbers are the results of torchvision's functional kernels.
TEST(TargetChain, MovesBoxesInTheirFormat) {
  const std::vector<float> box{10, 20, 30, 60};
  const Operation flip = op::RandomHorizontalFlip{1}, half = op::Resize{{40, 50}, {}}, pad = op::Pad{{3, 4, 5, 6}};
  EXPECT_EQ(boxes<float>({BoxFormat::kXyxy}, {flip}, box), (std::vector<float>{70, 20, 90, 60}));
  EXPECT_EQ(boxes<float>({BoxFormat::kXywh}, {flip}, box), (std::vector<float>{60, 20, 30, 60}));
  EXPECT_EQ(boxes<float>({BoxFormat::kCxcywh}, {flip}, box), (std::vector<float>{90, 20, 30, 60}));
  EXPECT_EQ(boxes<float>({BoxFormat::kXywh}, {half}, box), (std::vector<float>{5, 10, 15, 30}));
  EXPECT_EQ(boxes<float>({BoxFormat::kXywh}, {pad}, box), (std::vector<float>{13, 24, 30, 60}));
  // clipped to the new edges
  const Operation crop = op::CenterCrop{{40, 40}};
  EXPECT_EQ(boxes<float>({BoxFormat::kXyxy}, {crop}, box), (std::vector<float>{0, 0, 0, 40}));
  EXPECT_EQ(boxes<float>({BoxFormat::kCxcywh}, {crop}, {50, 40, 60, 20}), (std::vector<float>{20, 20, 40, 20}));
  EXPECT_EQ(boxes<float>({BoxFormat::kXyxy, false}, {crop}, box), (std::vector<float>{-20, 0, 0, 40}));
}

TEST(TargetChain, TakesIntegersTowardsZero) {
  const Operation third = op::Resize{{27, 33}, {}};
  EXPECT_EQ(boxes<std::int64_t>({BoxFormat::kXyxy}, {third}, {10, 20, 30, 59}),
            (std::vector<std::int64_t>{3, 6, 9, 19}));
  EXPECT_EQ(boxes<std::int64_t>({BoxFormat::kCxcywh}, {op::Pad{{1, 1, 1, 1}}}, {0, 0, 5, 5}),
            (std::vector<std::int64_t>{1, 1, 3, 3}));
}

TEST(TargetChain, KeepsWhatIsNoNumber) {
  const auto out = boxes<float>({BoxFormat::kXyxy}, {op::CenterCrop{{40, 40}}}, {kNan, 20, 1e9f, kNan});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], 40);
  EXPECT_TRUE(std::isnan(out[3]));
}

TEST(TargetChain, MovesPointsBetweenTheMiddlesOfPixels) {
  TargetDrawing drawing;
  const auto points = [&](std::vector<Operation> operations) {
    return moved<float>(TargetKind::kPoints, {}, std::move(operations), {0, 0, 99, 79, 150, -4}, drawing);
  };
  EXPECT_EQ(points({op::RandomHorizontalFlip{1}}), (std::vector<float>{99, 0, 0, 79, -51, -4}));
  EXPECT_EQ(points({op::RandomVerticalFlip{1}}), (std::vector<float>{0, 79, 99, 0, 150, 83}));
  EXPECT_EQ(points({op::Resize{{40, 50}, {}}}), (std::vector<float>{0, 0, 49.5f, 39.5f, 75, -2}));
}

TEST(TargetChain, SaysWhichRowsAreLeft) {
  TargetDrawing drawing;
  const std::vector<float> all{0, 0, 0.5f, 9, 1, 1, 9, 9, 9, 9, 1, 1, kNan, 0, 5, 5, 2, 2, 101, 9, 5, 5, 6, 6};
  const std::vector<Operation> twice{op::SanitizeBoundingBoxes{1, 1, {}}, op::SanitizeBoundingBoxes{2, 2, {}}};
  EXPECT_EQ(moved<float>(TargetKind::kBoxes, {}, twice, all, drawing), (std::vector<float>{1, 1, 9, 9}));
  EXPECT_TRUE(drawing.sanitized);
  EXPECT_EQ(drawing.rows_before, 6u);
  EXPECT_EQ(drawing.remaining, (std::vector<std::uint32_t>{1}));
  moved<float>(TargetKind::kBoxes, {}, {}, all, drawing);
  EXPECT_FALSE(drawing.sanitized);
}

TEST(TargetChain, BoxesDrawTheCropThatOthersTake) {
  TargetDrawing drawing;
  const std::vector<Operation> operations{op::RandomHorizontalFlip{1}, op::RandomIouCrop{.sampler_options = {0.3}}};
  const auto chain = *TargetChain::compile(TargetKind::kBoxes, {}, operations);
  const auto points = *TargetChain::compile(TargetKind::kPoints, {}, operations);
  IouCrops crops;
  set<float>(drawing, {10, 20, 60, 70, 0, 0, 3, 3}, 4);
  ASSERT_TRUE(chain->apply(kImage, {1, 2, 3}, crops, drawing));
  const auto* const crop = crops.find(1);
  ASSERT_TRUE(crop != nullptr && crop->has_value());
  EXPECT_EQ(crops.find(0), nullptr);
  set<float>(drawing, {99, 0}, 2);
  ASSERT_TRUE(points->apply(kImage, {1, 2, 3}, crops, drawing));
  EXPECT_EQ(drawing.rows.numbers<float>()[0], -static_cast<float>((*crop)->left));
  crops.clear();
  const auto alone = points->apply(kImage, {1, 2, 3}, crops, drawing);
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().what.find("depends on the boxes"), std::string::npos);
}

TEST(TargetChain, RefusesWhatTheOriginalRefuses) {
  const auto refusal = [](Operation operation) {
    const auto chain = TargetChain::compile(TargetKind::kBoxes, {}, {std::move(operation)});
    return chain ? std::string() : chain.error().what;
  };
  EXPECT_NE(refusal(op::Pad{{1, 1, 1, 1}, {}, PaddingMode::kEdge}).find("padding_mode"), std::string::npos);
  EXPECT_NE(refusal(op::RandAugment{}).find("cannot follow"), std::string::npos);
  EXPECT_EQ(refusal(op::Pad{{1, 1, 1, 1}}), "");
}

}  // namespace
}  // namespace feedline::transform
