// SPDX-License-Identifier: Apache-2.0
#include "transform/planar_resizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "transform/kernels/test_images.h"
#include "transform/kernels/variants.h"
#include "transform/steps.h"

namespace feedline::transform {
namespace {

constexpr base::SampleKey kKey{.seed = 4, .epoch = 1, .sample = 7};

// Planes of noise for an image with chroma at half resolution; each plane is reduced by 2^shift.
struct NoisyImage {
  int width = 0, height = 0;
  memory::Planes planes;

  NoisyImage(int image_width, int image_height, int count, bool halved, int shift, std::mt19937& random)
      : width(image_width), height(image_height) {
    planes.count = count;
    for (int c = 0; c < count; ++c) {
      memory::Plane& plane = planes.plane[c];
      const auto axis = [&](int size) {
        const bool half = halved && c > 0;
        return memory::PlaneAxis{.first = 0, .size = half ? (size + 1) / 2 : size, .halved = half, .shift = shift};
      };
      plane.x = axis(width), plane.y = axis(height);
      EXPECT_TRUE(plane.samples.resize(((plane.x.size - 1) >> shift) + 1, ((plane.y.size - 1) >> shift) + 1, 1));
      for (int y = 0; y < plane.samples.height(); ++y)
        for (int x = 0; x < plane.samples.width(); ++x)
          plane.samples.row(y)[x] = static_cast<std::uint8_t>(64 + random() % 128);
    }
  }

  // Returns the value of a pixel, which is the value of the pixel's sample.
  double value(int c, int x, int y) const {
    const memory::Plane& plane = planes.plane[c];
    const auto parts = [](const memory::PlaneAxis& axis, int at, int(&index)[2]) {
      index[0] = (axis.halved ? at / 2 : at) >> axis.shift;
      index[1] =
          !axis.halved ? index[0] : std::clamp(at % 2 == 0 ? at / 2 - 1 : at / 2 + 1, 0, axis.size - 1) >> axis.shift;
    };
    int columns[2], rows[2];
    parts(plane.x, x, columns);
    parts(plane.y, y, rows);
    const auto across = [&](int row) {
      return 0.75 * plane.samples.row(row)[columns[0]] + 0.25 * plane.samples.row(row)[columns[1]];
    };
    return 0.75 * across(rows[0]) + 0.25 * across(rows[1]);
  }
};

// Resizes the values of all pixels in the same way, in floating point and in one pass.
double resized_value(const NoisyImage& image, int c, const Box& crop, const AxisTable& columns, const AxisTable& rows,
                     int x, int y) {
  double sum = 0;
  for (int v = 0; v < rows.used(y); ++v)
    for (int u = 0; u < columns.used(x); ++u)
      sum += static_cast<double>(rows.weights(y)[v]) * columns.weights(x)[u] *
             image.value(c, crop.left + columns.first(x) + u, crop.top + rows.first(y) + v);
  return sum / (std::int64_t{1} << (2 * kWeightBits));
}

TEST(PlanarResizer, MakesThePixelsThatTheSamplesStandFor) {
  std::mt19937 random(20261121);
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 60; ++round) {
    const NoisyImage image(number(20, 120), number(20, 120), round % 5 == 0 ? 1 : 3, round % 2 == 0, round % 4, random);
    Box crop{0, 0, number(10, image.width), number(10, image.height)};
    crop.left = number(0, image.width - crop.width), crop.top = number(0, image.height - crop.height);
    const Size out{number(1, crop.height), number(1, crop.width)};
    const ResizeStep step{
        {crop.height, crop.width}, out, {0, 0, out.width, out.height}, Interpolation::kBilinear, round % 3 == 0};
    AxisTable columns, rows;
    columns.compute(columns_of(step), 0);
    rows.compute(rows_of(step), 0);
    PlanarResizer resizer;
    resizer.begin(step, crop.left, crop.top, 3, image.planes, *all_kernels().front());
    for (int y = 0; y < out.height; ++y) {
      const std::uint8_t* const row = resizer.next_row();
      for (int x = 0; x < out.width; ++x) {
        const auto plane = [&](int c) {
          return c < image.planes.count ? resized_value(image, c, crop, columns, rows, x, y) : 128.0;
        };
        const double luma = plane(0), blue = plane(1) - 128, red = plane(2) - 128;
        const double rgb[] = {luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red, luma + 1.772 * blue};
        // each of two passes rounds a plane by half a level, and blue is weighted by 1.772
        for (int c = 0; c < 3; ++c) ASSERT_NEAR(row[3 * x + c], std::clamp(rgb[c], 0.0, 255.0), 3.4) << x << " " << y;
      }
    }
  }
}

std::vector<std::byte> applied(const Chain& chain, const NoisyImage& image, bool planes, const TestImage& pixels) {
  Drawing drawing;
  Workspace workspace;
  EXPECT_TRUE(chain.draw({image.height, image.width}, kKey, drawing));
  EXPECT_TRUE(drawing.planes.has_value());
  std::vector<std::byte> out(chain.output().bytes());
  const ArrayView view{out.data(), chain.output()};
  if (planes) {
    EXPECT_TRUE(chain.apply(drawing, image.planes, workspace, view));
  } else {
    const Box& r = drawing.region;
    const memory::PixelView region{pixels.view().row(r.top) + r.left * pixels.channels, r.width, r.height,
                                   pixels.channels, pixels.view().stride};
    EXPECT_TRUE(chain.apply(drawing, region, workspace, view));
  }
  return out;
}

std::vector<std::vector<Operation>> chains() {
  const op::Decode fast{ColorMode::kRgb, Fidelity::kFast};
  return {{fast, op::Resize{{20, 30}}},
          {fast, op::RandomResizedCrop{{16, 24}, {0.9, 1.0}}, op::RandomHorizontalFlip{1}},
          {fast, op::Resize{{40, 0}, {}, Interpolation::kBicubic}, op::CenterCrop{{17, 35}}, op::RandomVerticalFlip{1}},
          {fast, op::Resize{{20, 30}}, op::Pad{{1, 2, 3, 4}}, op::Grayscale{3}},
          {fast, op::Resize{{20, 30}}, op::RandomCrop{{9, 11}, {2, 2, 2, 2}}, op::Resize{{30, 20}}},
          {fast, op::Resize{{20, 30}}, op::Grayscale{1}}};
}

// For grey planes at full resolution, a chain must produce the same result from planes as from pixels.
TEST(ChainOnPlanes, GivesWhatItGivesOnPixels) {
  std::mt19937 random(5);
  const NoisyImage image(201, 160, 1, false, 0, random);
  TestImage pixels{201, 160, 3, {}};
  for (int y = 0; y < 160; ++y)
    for (int x = 0; x < 201; ++x) pixels.pixels.insert(pixels.pixels.end(), 3, image.planes.plane[0].samples.row(y)[x]);
  for (const auto& operations : chains())
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      const auto chain = Chain::compile(operations, {}, layout);
      ASSERT_TRUE(chain) << chain.error().what;
      const auto a = applied(**chain, image, true, pixels), b = applied(**chain, image, false, pixels);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i)  // the passes may round in a different order
        ASSERT_LE(std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i])), 1) << describe(operations.back()) << i;
    }
}

TEST(ChainOnPlanes, EveryVariantGivesTheSameBytes) {
  std::mt19937 random(6);
  const NoisyImage image(301, 260, 3, true, 1, random);
  for (const auto& operations : chains()) {
    const auto chain = Chain::compile(operations, DType::kFloat32, Layout::kNchw);
    ASSERT_TRUE(chain);
    std::vector<std::byte> first;
    for (const std::string& variant : simd_variants()) {
      const ForcedVariant forced(variant);
      const auto bytes = applied(**chain, image, true, {});
      if (first.empty()) first = bytes;
      ASSERT_EQ(bytes, first) << variant << " " << describe(operations.back());
    }
  }
}

TEST(ChainOnPlanes, TakesThemWhereThePictureGetsMuchSmaller) {
  const auto coarseness = [](Fidelity fidelity, Size image, const Operation& resize) {
    const auto chain =
        Chain::compile(std::vector<Operation>{op::Decode{ColorMode::kRgb, fidelity}, resize}, {}, Layout::kNchw);
    EXPECT_TRUE(chain);
    Drawing drawing;
    EXPECT_TRUE((*chain)->draw(image, kKey, drawing));
    return drawing.planes;
  };
  const op::Resize to_100{{100, 100}};
  EXPECT_EQ(coarseness(Fidelity::kFast, {249, 900}, to_100), std::nullopt);
  EXPECT_EQ(coarseness(Fidelity::kFast, {250, 900}, to_100), (memory::Coarseness{2, 2}));
  EXPECT_EQ(coarseness(Fidelity::kFast, {900, 400}, to_100), (memory::Coarseness{2, 4}));
  EXPECT_EQ(coarseness(Fidelity::kFast, {500, 800}, to_100), (memory::Coarseness{4, 4}));
  EXPECT_EQ(coarseness(Fidelity::kFast, {9000, 9000}, to_100), (memory::Coarseness{16, 16}));
  EXPECT_EQ(coarseness(Fidelity::kExact, {9000, 9000}, to_100), std::nullopt);
  EXPECT_EQ(coarseness(Fidelity::kFast, {9000, 9000}, op::Resize{{100, 100}, {}, Interpolation::kNearest}),
            std::nullopt);
  EXPECT_EQ(coarseness(Fidelity::kFast, {9000, 9000}, op::CenterCrop{{100, 100}}), std::nullopt);
}

TEST(ChainOnPlanes, SaysSo) {
  const auto chain = Chain::compile(chains()[0], {}, Layout::kNchw);
  ASSERT_TRUE(chain);
  EXPECT_EQ((*chain)->fidelity(), Fidelity::kFast);
  EXPECT_NE((*chain)->explain().front().find("fidelity fast"), std::string::npos);
  EXPECT_EQ(describe(chains()[0][0]), "decode(RGB, fidelity=fast)");
}

}  // namespace
}  // namespace feedline::transform
