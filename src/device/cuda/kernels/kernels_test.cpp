// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/kernels/images.h"
#include "device/cuda/kernels/launch.h"

// pipeline/fields/pixel_kernels_test.cpp compares the kernels' pixels with those of the engine's CPU path.

namespace feedline::device::cuda {
namespace {

PixelJob small_job() {
  PixelJob job{};
  job.rows = 2, job.width = 5, job.height = 3, job.channels = 3;
  job.in_stride = 45, job.out_stride = 45 * 4;
  job.tables = "a table";
  return job;
}

TEST(CheckJob, RefusesWhatKernelsCannotCount) {
  EXPECT_TRUE(check_job(small_job(), Element::kFloat32));
  const auto refused = [](auto change, Element element = Element::kFloat32) {
    PixelJob job = small_job();
    change(job);
    const Result<void> result = check_job(job, element);
    return result ? std::string("accepted") : result.error().what;
  };
  using Job = PixelJob&;
  EXPECT_NE(refused([](Job job) { job.channels = 5; }).find("5 channels"), std::string::npos);
  EXPECT_NE(refused([](Job job) { job.channels = 0; }).find("0 channels"), std::string::npos);
  EXPECT_NE(refused([](Job job) { job.rows = 0; }).find("no pixel"), std::string::npos);
  EXPECT_NE(refused([](Job job) { job.width = job.height = 1u << 16; }).find("2^31"), std::string::npos);
  EXPECT_NE(refused([](Job job) {
              job.width = job.height = 1u << 14;
              job.in_stride = job.out_stride = std::uint64_t{1} << 40;
              job.rows = 1u << 31;
            }).find("blocks"),
            std::string::npos);
  EXPECT_NE(refused([](Job job) { job.in_stride = 44; }).find("rows overlap"), std::string::npos);
  EXPECT_NE(refused([](Job job) { job.out_stride = 179; }).find("rows overlap"), std::string::npos);
  EXPECT_EQ(refused([](Job job) { job.out_stride = 90; }, Element::kFloat16), "accepted");
  EXPECT_NE(refused([](Job job) { job.tables = nullptr; }).find("table"), std::string::npos);
  EXPECT_EQ(refused([](Job job) { job.tables = nullptr; }, Element::kUint8), "accepted");
}

TEST(CheckJob, AsksForWholeRowsOfEachElement) {
  for (const Element element : {Element::kUint8, Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
    PixelJob job = small_job();
    job.out_stride = 45 * size_of(element);
    EXPECT_TRUE(check_job(job, element));
    --job.out_stride;
    EXPECT_FALSE(check_job(job, element));
  }
}

TEST(LaunchOf, HasAThreadForEveryPixelAndNoBlockWithout) {
  PixelJob job = small_job();
  EXPECT_EQ(launch_of(job, Element::kFloat32).blocks, 2u);
  job.width = kShare, job.height = 2;
  EXPECT_EQ(launch_of(job, Element::kFloat16).blocks, 2 * 2 * 3u);  // interleaved, elements are divided among blocks
  job.planar = 1;
  EXPECT_EQ(launch_of(job, Element::kFloat16).blocks, 2 * 2u);
  job.width = kShare + 1, job.height = 1;
  EXPECT_EQ(launch_of(job, Element::kFloat16).blocks, 2 * 2u);
  EXPECT_EQ(launch_of(job, Element::kBfloat16).threads, kThreads);
}

TEST(Images, AreForEveryGenerationFromVoltaOn) {
  const auto name = [](int major, int minor) { return std::string(image_for(major, minor)->name); };
  EXPECT_EQ(name(7, 0), "sm_70");
  EXPECT_EQ(name(7, 5), "sm_70");
  EXPECT_EQ(name(8, 0), "sm_80");
  EXPECT_EQ(name(8, 9), "sm_80");
  EXPECT_EQ(name(9, 0), "sm_90");
  EXPECT_EQ(name(10, 3), "sm_100");
  EXPECT_EQ(name(11, 0), "compute_70");  // no code for this generation
  EXPECT_EQ(name(12, 1), "sm_120");
  EXPECT_EQ(name(13, 0), "compute_70");
  EXPECT_EQ(ptx_for(9, 0)->name, "compute_70");
  for (const int minor : {0, 1, 2}) {
    const Result<Image> image = image_for(6, minor);
    ASSERT_FALSE(image);
    EXPECT_NE(image.error().what.find("6." + std::to_string(minor)), std::string::npos) << image.error().what;
    EXPECT_FALSE(ptx_for(6, minor));
  }
}

// The header of a code file states its architecture, and the file contains the kernels' names.
TEST(Images, HoldEveryKernel) {
  const std::set<std::string_view> names = {"sm_70", "sm_80", "sm_90", "sm_100", "sm_120", "compute_70"};
  const auto made = image_names();
  EXPECT_EQ((std::set<std::string_view>(made.begin(), made.end())), names);
  for (const auto& [major, minor] : {std::pair{7, 0}, {8, 0}, {9, 0}, {10, 0}, {12, 0}, {99, 0}}) {
    const Image image = *image_for(major, minor);
    for (const Element element : {Element::kUint8, Element::kFloat32, Element::kFloat16, Element::kBfloat16})
      EXPECT_NE(image.bytes.find(launch_of(small_job(), element).entry), std::string::npos) << image.name;
    if (major == 99) continue;
    EXPECT_EQ(image.bytes.substr(0, 4), "\177ELF") << image.name;
    EXPECT_EQ(image.bytes[18], static_cast<char>(190)) << image.name;  // EM_CUDA
  }
}

TEST(Images, ArePtxThatRoundsEveryProductAndSum) {
  const std::string ptx = ptx_for(7, 0)->bytes;
  EXPECT_EQ(ptx.back(), '\0');
  EXPECT_NE(ptx.find(".target sm_70"), std::string::npos);
  EXPECT_NE(ptx.find(".version 6.0"), std::string::npos);
  EXPECT_NE(ptx.find("mul.rn.f32"), std::string::npos);
  for (const char* fused : {"fma.", ".ftz", "div.approx", "mad.rn"})
    EXPECT_EQ(ptx.find(fused), std::string::npos) << fused;
}

// Rounds to the nearer neighbour, or to the even one if both are equally near.
TEST(ToBfloat16, RoundsToTheNearestEven) {
  const auto value = [](std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
  std::uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t bits = i % 3 == 0 ? (state & 0xffff0000u) | 0x8000u : state;  // ties are frequent
    if (!std::isfinite(std::bit_cast<float>(bits))) continue;
    const std::uint32_t down = bits & 0xffff0000u, up = down + 0x10000u;
    if (!std::isfinite(std::bit_cast<float>(up))) continue;
    const double below = std::abs(value(bits) - value(down)), above = std::abs(value(up) - value(bits));
    const bool rises = above < below || (above == below && (down & 0x10000u) != 0);
    ASSERT_EQ(to_bfloat16(std::bit_cast<float>(bits)), (rises ? up : down) >> 16) << std::hex << bits;
  }
  EXPECT_EQ(to_bfloat16(INFINITY), 0x7f80);
  EXPECT_EQ(to_bfloat16(-INFINITY), 0xff80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);  // above the largest
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x7f800001u)) & 0x7fc0, 0x7fc0);
  EXPECT_EQ(to_bfloat16(-0.0f), 0x8000);
}

}  // namespace
}  // namespace feedline::device::cuda
