// SPDX-License-Identifier: Apache-2.0

// Compares rows that the kernel, running on the CPU, makes from a device's cached images with those of the engine's CPU
// path: for the same drawing, they must be equal byte for byte.

#include "pipeline/fields/device_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/cuda/kernels/launch.h"
#include "transform/chain.h"
#include "transform/kernels/pixel_ops/enhance.h"

namespace feedline::pipeline {
namespace {

namespace cuda = device::cuda;
using Operations = std::vector<Operation>;

struct Image {
  Size size;
  int channels;
  std::vector<std::uint8_t> pixels;
  memory::PixelView view() const {
    return {pixels.data(), size.width, size.height, channels, static_cast<std::size_t>(size.width * channels)};
  }
};

Image image_of(Size size, int channels, std::mt19937& random) {
  Image image{size, channels, {}};
  image.pixels.resize(static_cast<std::size_t>(size.width * size.height * channels));
  // with both extremes, whose sums are clamped where weights are negative
  for (std::uint8_t& pixel : image.pixels) {
    const auto value = static_cast<std::uint8_t>(random());
    pixel = size.width % 2 == 0 ? value : value > 127 ? 255 : 0;
  }
  return image;
}

struct Case {
  const char* name;
  Operations operations;
  Size least{1, 1};     // minimum size of the images
  bool is_rgb = false;  // exclude single-channel images
};

op::RandomCrop bordered(PaddingMode mode) {
  return {.size = {13, 11}, .padding = {5, 2, 3, 4}, .fill = {7, 80, 201}, .padding_mode = mode};
}

op::ColorJitter jitter() { return {{0.2, 1.8}, {0.2, 1.8}, {0.2, 1.8}, {-0.3, 0.3}}; }

const std::vector<Case> kCases = {
    {"resize", {op::Resize{.size = {17, 23}}}},
    {"bicubic", {op::Resize{.size = {17, 23}, .interpolation = Interpolation::kBicubic}}},
    {"lanczos", {op::Resize{.size = {17, 23}, .interpolation = Interpolation::kLanczos}}},
    {"box", {op::Resize{.size = {17, 23}, .interpolation = Interpolation::kBox}}},
    {"nearest", {op::Resize{.size = {17, 23}, .interpolation = Interpolation::kNearest}}},
    {"torchs", {op::Resize{.size = {17, 23}, .interpolation = Interpolation::kTorchBicubic}}},
    {"short side and crop", {op::Resize{.size = {24, 0}}, op::CenterCrop{.size = {20, 20}}}},
    {"random resized crop",
     {op::RandomResizedCrop{.size = {19, 16}}, op::RandomHorizontalFlip{}, op::RandomVerticalFlip{}}},
    {"drawn filter", {op::RandomResizedCrop{.size = {19, 16}, .interpolation = Interpolation::kRandom}}},
    {"crop", {op::RandomCrop{.size = {13, 11}}, op::RandomHorizontalFlip{}}, {13, 11}},
    {"crop, resize, crop",
     {op::RandomCrop{.size = {15, 14}}, op::Resize{.size = {30, 33}}, op::RandomCrop{.size = {13, 11}},
      op::RandomHorizontalFlip{}},
     {15, 14}},
    {"constant border", {bordered(PaddingMode::kConstant), op::RandomHorizontalFlip{}}, {8, 8}},
    {"edge", {op::RandomVerticalFlip{}, bordered(PaddingMode::kEdge)}, {8, 8}},
    {"reflected", {bordered(PaddingMode::kReflect), op::RandomHorizontalFlip{}}, {8, 8}},
    {"symmetric", {bordered(PaddingMode::kSymmetric), op::RandomHorizontalFlip{}}, {8, 8}},
    {"wide border",
     {op::Pad{.padding = {40, 30, 20, 10}, .padding_mode = PaddingMode::kReflect}, op::RandomCrop{.size = {13, 11}}}},
    {"jittered crops",
     {op::RandomResizedCrop{.size = {19, 16}}, op::RandomHorizontalFlip{}, jitter(), op::RandomVerticalFlip{}}},
    {"jittered only", {op::RandomCrop{.size = {13, 11}}, jitter()}, {13, 11}},
    {"jittered border", {bordered(PaddingMode::kReflect), jitter(), op::RandomHorizontalFlip{}}, {8, 8}},
    {"hues", {op::CenterCrop{.size = {40, 41}}, op::ColorJitter{{1, 1}, {1, 1}, {1, 1}, {-0.5, 0.5}}}},
    {"contrast", {op::CenterCrop{.size = {40, 41}}, op::ColorJitter{{1, 1}, {0, 3}, {1, 1}}}},
    {"grey", {op::Resize{.size = {17, 23}}, op::Grayscale{3}}, {1, 1}, true},
    {"as SimCLR",
     {op::RandomResizedCrop{.size = {19, 16}}, op::RandomHorizontalFlip{}, op::RandomApply{{jitter()}, 0.8},
      op::RandomChange{Augmentation::kGrayscale, 0, 0.3}}},
    {"smaller than its crop", {op::CenterCrop{.size = {40, 41}, .fill = {1, 2, 3}}, op::RandomHorizontalFlip{}}},
};

class DeviceRows : public testing::TestWithParam<Case> {};

TEST_P(DeviceRows, AreThoseOfTheEngine) {
  const auto& [name, operations, least, is_rgb] = GetParam();
  ASSERT_TRUE(check_device_operations(operations)) << check_device_operations(operations).error().message();
  std::mt19937 random(1);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  transform::Workspace workspace;
  transform::AxisTable columns, rows;
  for (int turn = 0; turn < 60; ++turn) {
    const int channels = turn % 3 == 0 && !is_rgb ? 1 : 3;
    Operations all{op::Decode{.mode = channels == 1 ? ColorMode::kL : ColorMode::kRgb}};
    all.insert(all.end(), operations.begin(), operations.end());
    const auto chain = transform::Chain::compile_rest(all, 1, std::nullopt, Layout::kNhwc);
    ASSERT_TRUE(chain) << chain.error().message();
    const Shape& shape = (*chain)->output().shape;
    const Size out{static_cast<int>(shape[0]), static_cast<int>(shape[1])};
    const Image image = image_of({number(least.height, 90), number(least.width, 90)}, channels, random);
    transform::Drawing drawing;
    ASSERT_TRUE((*chain)->draw(image.size, {3, 0, static_cast<std::uint64_t>(turn)}, drawing));

    std::vector<std::byte> expected((*chain)->output().bytes());
    memory::PixelView needed = image.view();
    needed.data = needed.row(drawing.region.top) + drawing.region.left * channels;
    needed.width = drawing.region.width, needed.height = drawing.region.height;
    ASSERT_TRUE((*chain)->apply(drawing, needed, workspace, {expected.data(), (*chain)->output()}));

    std::vector<std::uint64_t> row(device_row_bytes(operations, out) / 8 * 2);  // the second row stays empty
    const std::span bytes = std::as_writable_bytes(std::span(row));
    const auto written = write_device_row(drawing, image.view(), columns, rows, bytes.first(bytes.size() / 2));
    ASSERT_TRUE(written) << written.error().message();
    clear_device_row(bytes.subspan(bytes.size() / 2));
    std::vector<std::uint8_t> found(2 * expected.size(), 9);
    const cuda::CachedRowsJob job{.in = reinterpret_cast<const std::uint8_t*>(row.data()),
                                  .in_stride = bytes.size() / 2,
                                  .out = found.data(),
                                  .out_stride = expected.size(),
                                  .rows = 2,
                                  .width = static_cast<std::uint32_t>(out.width),
                                  .height = static_cast<std::uint32_t>(out.height),
                                  .channels = static_cast<std::uint32_t>(channels)};
    ASSERT_TRUE(cuda::check_job(job));
    cuda::run_on_cpu(job);
    cuda::change_colours_on_cpu(job);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(found[i], static_cast<std::uint8_t>(expected[i]))
          << name << ", byte " << i << " from an image of " << image.size.height << " x " << image.size.width;
      ASSERT_EQ(found[expected.size() + i], 0) << "an empty row is black";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, DeviceRows, testing::ValuesIn(kCases), [](const auto& tested) {
  std::string name = tested.param.name;
  std::erase_if(name, [](char c) { return c == ' ' || c == ','; });
  return name;
});

TEST(DeviceRowsRefuse, WhatADeviceDoesNot) {
  const auto words = [](const Operations& operations) {
    const auto checked = check_device_operations(operations);
    return checked ? std::string("accepted") : checked.error().message();
  };
  const op::Resize resize{.size = {8, 8}};
  const op::RandomCrop border = bordered(PaddingMode::kConstant);
  const op::RandomChange solarize{Augmentation::kSolarize, 128, 0.5};
  EXPECT_NE(words({solarize}).find("random_solarize after it is not supported on a GPU"), std::string::npos);
  EXPECT_NE(words({op::RandomApply{{jitter(), solarize}, 1}}).find("is not supported on a GPU"), std::string::npos);
  EXPECT_NE(words({op::Grayscale{1}}).find("grayscale after it is not supported on a GPU"), std::string::npos);
  EXPECT_NE(words({jitter(), resize}).find("resize after it follows color_jitter"), std::string::npos);
  EXPECT_NE(words({jitter(), op::CenterCrop{.size = {4, 4}}}).find("follows color_jitter"), std::string::npos);
  EXPECT_NE(words({jitter(), jitter(), op::Grayscale{3}}).find("supports, at most 8"), std::string::npos);
  EXPECT_EQ(words({resize, jitter(), jitter(), op::RandomVerticalFlip{}, op::Normalize{}}), "accepted");
  const op::RandomErasing noise{.noise = op::RandomErasing::Noise::kValues};
  EXPECT_NE(words({op::RandomErasing{}}).find("random_erasing after it needs float input"), std::string::npos);
  EXPECT_NE(words({op::Normalize{}, noise}).find("draws a number for each value"), std::string::npos);
  EXPECT_EQ(words({op::Normalize{}, op::RandomErasing{}, op::RandomVerticalFlip{}}), "accepted");
  EXPECT_NE(words({op::RandomCrop{.size = {8, 8}, .pad_if_needed = true}}).find("pad_if_needed"), std::string::npos);
  EXPECT_NE(words({resize, resize}).find("follows resize"), std::string::npos);
  EXPECT_NE(words({op::RandomHorizontalFlip{}, resize}).find("follows random_horizontal_flip"), std::string::npos);
  EXPECT_NE(words({border, resize}).find("follows random_crop"), std::string::npos);
  EXPECT_NE(words({resize, border}).find("follows resize"), std::string::npos);
  EXPECT_NE(words({border, op::Pad{}}).find("follows random_crop"), std::string::npos);
  EXPECT_EQ(words({op::RandomCrop{.size = {8, 8}}, resize, op::CenterCrop{.size = {4, 4}}, op::Normalize{}}),
            "accepted");
}

TEST(DeviceRows, NameWhatIsWrittenOverThem) {
  constexpr int kMost = 2;
  EXPECT_EQ(rectangles_bytes(0), 0u);
  const std::size_t rectangle_bytes = rectangles_bytes(kMost), stride = device_row_bytes({}, {1, 1}) + rectangle_bytes;
  std::vector<std::byte> rows(3 * stride, std::byte{9});
  const auto write = [&](std::size_t row, const std::vector<transform::DeviceRectangle>& rectangles) {
    write_rectangles(rectangles, std::span(rows).subspan((row + 1) * stride - rectangle_bytes, rectangle_bytes));
  };
  write(0, {{{1, 2, 3, 4}, {5, 6, 7}}, {{8, 9, 10, 11}, {}}});
  clear_device_row(std::span(rows).subspan(stride, stride), kMost);
  write(2, {{{12, 13, 14, 15}, {16, 17, 18}}});
  std::vector<cuda::PixelRow> inputs(3);
  std::vector<cuda::Rectangle> rectangles(3);
  gather_rectangles(rows.data(), stride, 3, kMost, reinterpret_cast<std::byte*>(inputs.data()),
                    reinterpret_cast<std::byte*>(rectangles.data()));
  const std::uint32_t expected[][2] = {{0, 2}, {2, 0}, {2, 1}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(inputs[i].mirrored, 0u);
    EXPECT_EQ(inputs[i].first_rectangle, expected[i][0]);
    EXPECT_EQ(inputs[i].rectangles, expected[i][1]);
    EXPECT_EQ(rectangles[i].patch, cuda::kNoPatch);
  }
  EXPECT_EQ(rectangles[1].left, 8);
  const cuda::Rectangle& last = rectangles[2];
  EXPECT_EQ((std::array{last.left, last.top, last.width, last.height}), (std::array{12, 13, 14, 15}));
  EXPECT_EQ((std::array{last.value[0], last.value[1], last.value[2]}), (std::array{16u, 17u, 18u}));
  EXPECT_EQ(rows[0], std::byte{9}) << "the bytes before them";
}

// Uses colours spread over the whole RGB cube, and greys.
TEST(DeviceRows, TurnEveryHueAsTheEngineDoes) {
  constexpr int kSide = 48;
  Image image{{kSide, kSide}, 3, {}};
  std::mt19937 random(2);
  for (int i = 0; i < kSide * kSide; ++i)
    for (int c = 0; c < 3; ++c) image.pixels.push_back(static_cast<std::uint8_t>(i < 256 ? i : random()));
  for (int shift = -127; shift <= 127; ++shift) {
    const double factor = (shift + (shift < 0 ? -0.5 : 0.5)) / 255;
    memory::PixelBuffer expected;
    ASSERT_TRUE(transform::adjust_hue(image.view(), factor, expected));
    cuda::CachedRow row{.colours = 1};
    row.colour[0] = {cuda::ColourChange::kHue, transform::hue_shift(factor)};
    std::vector<std::uint8_t> found = image.pixels;
    cuda::change_colours_on_cpu({.in = reinterpret_cast<const std::uint8_t*>(&row),
                                 .in_stride = sizeof row,
                                 .out = found.data(),
                                 .out_stride = found.size(),
                                 .rows = 1,
                                 .width = kSide,
                                 .height = kSide,
                                 .channels = 3});
    for (int y = 0; y < kSide; ++y)
      ASSERT_EQ(std::memcmp(found.data() + y * kSide * 3, expected.row(y), kSide * 3), 0) << shift << ", line " << y;
  }
}

TEST(DeviceRowsRefuse, WeightsThatDoNotFit) {
  const Operations operations{op::Resize{.size = {4, 4}}};
  const auto chain = transform::Chain::compile_rest(operations, 0, std::nullopt, Layout::kNhwc);
  ASSERT_TRUE(chain);
  transform::AxisTable columns, rows;
  std::vector<std::byte> row(device_row_bytes(operations, {4, 4}), std::byte{5});
  const std::vector<std::byte> before = row;
  const auto written = [&](Size size) {
    transform::Drawing drawing;
    EXPECT_TRUE((*chain)->draw(size, {}, drawing));
    const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width * size.height * 3));
    return write_device_row(drawing,
                            {pixels.data(), size.width, size.height, 3, static_cast<std::size_t>(size.width * 3)},
                            columns, rows, row);
  };
  const auto refused = written({90, 90});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_NE(refused.error().message().find("from 90 x 90 to 4 x 4"), std::string::npos);
  EXPECT_EQ(row, before) << "no partial write";
  EXPECT_TRUE(written({60, 60}));
}

TEST(DeviceRowsRefuse, ASecondBorderThatOnlyAnImageShows) {
  const Operations operations{op::Resize{.size = {20, 0}}, op::CenterCrop{.size = {24, 24}}};
  ASSERT_TRUE(check_device_operations(operations));
  const auto chain = transform::Chain::compile_rest(operations, 0, std::nullopt, Layout::kNhwc);
  ASSERT_TRUE(chain);
  transform::Drawing drawing;
  ASSERT_TRUE((*chain)->draw({50, 60}, {}, drawing));
  transform::AxisTable columns, rows;
  std::vector<std::byte> row(device_row_bytes(operations, {24, 24}));
  const auto written = write_device_row(drawing, {}, columns, rows, row);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find("smaller than a crop"), std::string::npos);
}

}  // namespace
}  // namespace feedline::pipeline
