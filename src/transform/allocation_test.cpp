// SPDX-License-Identifier: Apache-2.0

// After a thread's drawing and workspace have processed the largest sample, further samples must not allocate memory.
// This file replaces global operator new to count its calls.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "transform/chain.h"
#include "transform/kernels/pixel_ops/apply.h"
#include "transform/kernels/test_images.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace feedline::transform {
namespace {

TEST(Allocation, NoneOnceWarm) {
  constexpr auto kNoise = op::RandomErasing::Noise::kValues;
  const std::vector<Operation> operations{
      op::RandomHorizontalFlip{},
      op::RandomResizedCrop{{64, 64}},
      op::ColorJitter{{0, 2}, {0, 2}, {0, 2}, {-0.5, 0.5}},
      op::Pad{{4, 4, 4, 4}},
      op::RandomCrop{{64, 64}},
      op::RandomErasing{.noise = kNoise},
      op::GaussianBlur{{5, 5}},
      op::RandomApply{{op::RandomOrder{{op::RandomHorizontalFlip{}, op::AugMix{}}}}},
      *timm_augment({.config = "augmix-m5"}),
      *timm_augment({.config = "rand-m9-mstd0.5"}),
      op::Normalize{{0.5f}, {0.5f}},
      op::RandomErasing{.noise = kNoise}};
  const auto chain = *Chain::compile(operations, {}, Layout::kNchw);
  const TestImage image = test_image(200, 150, 3, 2);
  std::vector<std::byte> out(chain->output().bytes());
  Drawing drawing;
  Workspace workspace;
  const auto epoch = [&](std::uint64_t epoch_number) {
    for (std::uint64_t sample = 0; sample < 60; ++sample) {
      ASSERT_TRUE(chain->draw({150, 200}, {0, epoch_number, sample}, drawing));
      const Box& region = drawing.region;
      const memory::PixelView view{image.view().row(region.top) + region.left * 3, region.width, region.height, 3, 600};
      ASSERT_TRUE(chain->apply(drawing, view, workspace, {out.data(), chain->output()}));
    }
  };
  epoch(0);
  const std::uint64_t before = allocations.load();
  epoch(0);
  EXPECT_EQ(allocations.load(), before);
}

TEST(Allocation, NoneByPixelOperationsOnceWarm) {
  using namespace pixel_op;
  const std::array<double, 6> slant{1, 0.2, -3, 0.1, 0.9, 2};
  const PixelOperation operations[] = {Autocontrast{},
                                       Equalize{},
                                       Invert{},
                                       Posterize{3},
                                       Solarize{90},
                                       SolarizeAdd{40, 128},
                                       Brightness{1.3},
                                       Contrast{1.3},
                                       Saturation{0.4},
                                       Sharpness{1.8},
                                       Hue{0.2},
                                       Grayscale{3},
                                       Affine{slant, Interpolation::kNearest},
                                       Affine{slant, Interpolation::kBilinear},
                                       Perspective{{1, 0.1, 0, 0, 1, 0, 0.001, 0}, Interpolation::kBicubic},
                                       Rotate{30, Interpolation::kNearest, true},
                                       Rotate{90, Interpolation::kNearest, true},
                                       GaussianBlur{{9, 23}, {1, 2}},
                                       Erase{{3, 4, 5, 6}, {1, 2, 3}, {}}};
  const TestImage image = test_image(200, 150, 3, 2);
  PixelScratch scratch;
  memory::PixelBuffer out;
  const auto all = [&] {
    for (const PixelOperation& operation : operations) ASSERT_TRUE(apply(operation, image.view(), scratch, out));
  };
  all();
  const std::uint64_t before = allocations.load();
  all();
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace feedline::transform
