// SPDX-License-Identifier: Apache-2.0

// Tests operations that define their own kernel.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transform/chain.h"
#include "transform/drawer.h"
#include "transform/kernels/test_images.h"
#include "transform/operation/image_operation.h"
#include "transform/operation/inference.h"

namespace feedline::transform {
namespace {

// Writes each pixel before it reads the next ones, so `out` must not be the buffer of `in`.
Result<void> rotate_rows(const OwnKernel& /*self*/, const memory::PixelView& in, const KernelValues& values,
                         memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  const auto row = static_cast<std::size_t>(in.width) * static_cast<std::size_t>(in.channels);
  const std::size_t first = static_cast<std::size_t>(values[0]) * static_cast<std::size_t>(in.channels);
  for (int y = 0; y < in.height; ++y)
    for (std::size_t i = 0; i < row; ++i) out.row(y)[i] = in.row(y)[(first + i) % row];
  return {};
}

constexpr OwnKernel kRotateRows{.run = rotate_rows, .works_in_place = false, .moves_pixels = true};

// Rotates each row by the given number of pixels to the left.
class RotateRows final : public OperationOf<int> {
 public:
  using OperationOf::OperationOf;
  const OperationType& type() const override {
    static constexpr OperationType kType{"rotate_rows", {}, nullptr, nullptr, nullptr};
    return kType;
  }
  std::string describe() const override { return std::to_string(args_); }
  Properties properties() const override { return {.moves_pixels = true}; }
  Result<void> infer(Inference& image) const override { return image.needs_pixels(); }
  Result<void> draw(Drawer& drawer) const override {
    drawer.canvas().run(kRotateRows, {static_cast<double>(args_)});
    return {};
  }
};

Operation rotate_rows(int columns) { return Operation(std::make_shared<const RotateRows>(columns)); }

std::vector<std::uint8_t> run_on(const TestImage& image, const std::vector<Operation>& operations) {
  const auto chain = Chain::compile(operations, {}, Layout::kNhwc);
  EXPECT_TRUE(chain) << chain.error().message();
  Drawing drawing;
  Workspace workspace;
  EXPECT_TRUE((*chain)->draw({image.height, image.width}, {.seed = 1, .epoch = 2, .sample = 3}, drawing));
  EXPECT_EQ(drawing.region, (Box{0, 0, image.width, image.height}));
  std::vector<std::uint8_t> out((*chain)->output().bytes());
  EXPECT_TRUE((*chain)->apply(drawing, image.view(), workspace,
                              {reinterpret_cast<std::byte*>(out.data()), (*chain)->output()}));
  return out;
}

// Rotating twice reads the output of the first kernel; a kernel that moves pixels runs after an earlier flip.
TEST(OwnKernel, RunsAfterTheOperationsBeforeIt) {
  const TestImage image = test_image(7, 5, 3, 1);
  const auto rotated =
      run_on(image, {op::RandomHorizontalFlip{1}, rotate_rows(2), rotate_rows(1), op::CenterCrop{{5, 7}}});
  ASSERT_EQ(rotated.size(), image.pixels.size());
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 7; ++x) {
      const std::uint8_t* const expected = image.view().row(y) + (6 - (x + 3) % 7) * 3;
      ASSERT_EQ(std::memcmp(rotated.data() + (y * 7 + x) * 3, expected, 3), 0) << x << ", " << y;
    }
}

}  // namespace
}  // namespace feedline::transform
