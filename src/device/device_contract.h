// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests for the contract that every Device must meet. A device registers with
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(DeviceUnderTest{"host", &host_device}));

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/kernels/launch.h"
#include "device/device.h"

namespace feedline::device {

inline std::vector<std::byte> read_by_host(const Begun& begun) {
  return {begun.memory->data(), begun.memory->data() + begun.memory->bytes()};
}

struct DeviceUnderTest {
  std::string name;
  std::function<std::shared_ptr<Device>()> make;  // a second call in a test returns the same device for another loader
  // Reads a batch's memory after its arrival. If the host cannot read the device's memory, the device copies it back.
  std::function<std::vector<std::byte>(const Begun&)> read = &read_by_host;
  std::function<void()> check_end = [] {};  // called at the end of a test, after everything is destroyed
};

inline void PrintTo(const DeviceUnderTest& device, std::ostream* out) { *out << device.name; }

class DeviceContract : public testing::TestWithParam<DeviceUnderTest> {
 protected:
  std::vector<std::byte> arrived(const Begun& begun) const {
    if (begun.ready) {
      EXPECT_TRUE(begun.ready->wait());
      EXPECT_TRUE(begun.ready->is_ready());
    }
    return GetParam().read(begun);
  }
  void TearDown() override {
    device_.reset();
    GetParam().check_end();
  }
  std::shared_ptr<Device> device_ = GetParam().make();
};

TEST_P(DeviceContract, MemoryIsAlignedAndWritableToItsLastByte) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{5} << 20, (std::size_t{38} << 20) + 3}) {
    auto lease = memory::Lease::take(device_->allocator(), bytes);
    ASSERT_TRUE(lease);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*lease)->data()) % memory::Allocator::kAlignment, 0u);
    std::memset((*lease)->data(), 0xA5, bytes);
    EXPECT_EQ((*lease)->bytes(), bytes);
  }
}

TEST_P(DeviceContract, BringsWhatWasFilled) {
  auto lease = memory::Lease::take(device_->allocator(), 1000);
  ASSERT_TRUE(lease);
  std::memset((*lease)->data(), 7, 1000);
  auto begun = device_->begin(std::move(*lease));
  ASSERT_TRUE(begun);
  EXPECT_GE(begun->memory->bytes(), 1000u);
  EXPECT_EQ(arrived(*begun)[999], std::byte{7});
  EXPECT_EQ(arrived(*begun)[0], std::byte{7}) << "asked twice";
}

TEST_P(DeviceContract, OnlyTheHostGivesBackWhatItWasGiven) {
  auto lease = memory::Lease::take(device_->allocator(), 1000);
  ASSERT_TRUE(lease);
  const auto begun = device_->begin(*lease);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->memory == *lease, device_->is_host());
  EXPECT_EQ(device_->location().kind == DeviceKind::kHost, device_->is_host());
}

// Filled memory is reused: the next batch must not overwrite data that is still being read.
TEST_P(DeviceContract, KeepsWhatItWasGivenUntilItHasReadIt) {
  constexpr std::size_t kBytes = 100'000;
  std::vector<Begun> begun;
  for (int i = 0; i < 12; ++i) {
    auto lease = memory::Lease::take(device_->allocator(), kBytes);
    ASSERT_TRUE(lease);
    std::memset((*lease)->data(), i, kBytes);
    auto started = device_->begin(std::move(*lease));
    ASSERT_TRUE(started);
    begun.push_back(std::move(*started));
  }
  for (int i = 11; i >= 0; --i) {
    const std::vector<std::byte> data = arrived(begun[static_cast<std::size_t>(i)]);
    for (std::size_t at = 0; at < kBytes; ++at) ASSERT_EQ(data[at], static_cast<std::byte>(i)) << "batch " << i;
  }
}

TEST_P(DeviceContract, GoesOnWithoutWhoeverBegan) {
  auto lease = memory::Lease::take(device_->allocator(), 1000);
  ASSERT_TRUE(lease);
  std::memset((*lease)->data(), 9, 1000);
  auto begun = device_->begin(std::move(*lease));
  ASSERT_TRUE(begun);
  auto given_up = device_->begin(*memory::Lease::take(device_->allocator(), 1000));
  given_up = std::unexpected(Error{});  // an abandoned epoch
  device_.reset();
  EXPECT_EQ(arrived(*begun)[500], std::byte{9});
}

TEST_P(DeviceContract, ManyThreadsMayBeginAndWait) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) {
        auto lease = memory::Lease::take(device_->allocator(), 10'000);
        ASSERT_TRUE(lease);
        std::memset((*lease)->data(), t, 10'000);
        const auto begun = device_->begin(std::move(*lease));
        ASSERT_TRUE(begun);
        ASSERT_EQ(arrived(*begun)[9'999], static_cast<std::byte>(t));
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_P(DeviceContract, PreparedMemoryIsAsGood) {
  ASSERT_TRUE(device_->allocator()->prepare(50'000, 3));
  std::vector<std::shared_ptr<memory::Lease>> leases;
  for (int i = 0; i < 4; ++i) {
    leases.push_back(*memory::Lease::take(device_->allocator(), 50'000));
    std::memset(leases.back()->data(), i, 50'000);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(leases[static_cast<std::size_t>(i)]->data()[49'999], static_cast<std::byte>(i));
}

// A batch with two image fields, one of them mixed: a GPU must produce the same elements as the kernels on the CPU.
TEST_P(DeviceContract, MakesFloatsOfBytes) {
  if (!device_->makes_elements()) GTEST_SKIP() << device_->explain();
  constexpr std::size_t kRows = 5, kPixels = 13 * 7, kRow = kPixels * 3, kTables = 2048, kMixed = kTables + 768 * 4;
  constexpr std::size_t kHalfTables = kMixed + 512, kFilled = kHalfTables + 768 * 2, kMade = 8192 + 4096;
  auto lease = memory::Lease::take(device_->allocator(), kFilled);
  ASSERT_TRUE(lease);
  std::byte* const data = (*lease)->data();
  for (std::size_t i = 0; i < kRows * kRow; ++i) data[i] = static_cast<std::byte>(i * 37 % 251);
  for (std::size_t i = 0; i < 768; ++i) {
    const float value = static_cast<float>(i) * 0.37f - 40;
    const auto half = static_cast<std::uint16_t>(i * 7);
    std::memcpy(data + kTables + i * 4, &value, 4);
    std::memcpy(data + kHalfTables + i * 2, &half, 2);
  }
  for (std::uint32_t i = 0; i < kRows; ++i) {
    const cuda::MixedRow row{i, (i + 1) % 5, cuda::MixedRow::Kind(i % 3), 0.25f, 0.75f, 2, 1, 9, 5};
    std::memcpy(data + kMixed + i * sizeof row, &row, sizeof row);
  }
  const std::vector<std::byte> filled(data, data + kFilled);
  const Finish finish{kMade,
                      {{.from = 0, .to = 0, .rows = kRows, .size = {7, 13}, .tables = kTables, .mixed = kMixed},
                       {.from = kRow,
                        .to = 8192,
                        .rows = 2,
                        .size = {7, 13},
                        .layout = Layout::kNhwc,
                        .dtype = DType::kFloat16,
                        .tables = kHalfTables}}};
  auto begun = device_->begin_making(std::move(*lease), finish);
  ASSERT_TRUE(begun) << begun.error().message();
  const std::vector<std::byte> found = arrived(*begun);

  cuda::PixelJob job{};
  std::vector<std::byte> expected(kRows * kRow * 4), halves(2 * kRow * 2);
  job.in = reinterpret_cast<const std::uint8_t*>(filled.data());
  job.in_stride = kRow, job.out = expected.data(), job.out_stride = kRow * 4, job.tables = filled.data() + kTables;
  job.mixed = reinterpret_cast<const cuda::MixedRow*>(filled.data() + kMixed);
  job.rows = kRows, job.width = 13, job.height = 7, job.channels = 3, job.planar = 1;
  cuda::run_on_cpu(job, cuda::Element::kFloat32);
  job.in += kRow, job.out = halves.data(), job.out_stride = kRow * 2, job.tables = filled.data() + kHalfTables;
  job.mixed = nullptr, job.rows = 2, job.planar = 0;
  cuda::run_on_cpu(job, cuda::Element::kFloat16);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(found[i], expected[i]) << "byte " << i;
  EXPECT_EQ(std::memcmp(found.data() + 8192, halves.data(), halves.size()), 0);
  EXPECT_EQ(std::memcmp(found.data() + kMade, filled.data(), kFilled), 0) << "the filled memory follows it";
}

// After the loader that stored the images has been destroyed, another loader on the same device makes the rows.
TEST_P(DeviceContract, MakesRowsOfResidentImages) {
  if (device_->is_host()) {
    EXPECT_EQ(device_->make_resident_images(100).error().code, ErrorCode::kConfig);
    return;
  }
  if (!device_->makes_elements()) GTEST_SKIP() << device_->explain();
  constexpr int kWidth = 11, kHeight = 6, kImages = 40, kRows = 9;
  constexpr std::size_t kStride = 128, kRow = 7 * 5 * 3, kMade = 1024;
  const auto byte_of = [](int image, std::size_t i) {
    return static_cast<std::byte>((static_cast<std::size_t>(image) * 41 + i * 7) % 251);
  };
  const auto image_of = [](std::size_t row) { return row == kRows - 1 ? kImages - 1 : static_cast<int>(row) * 5; };
  auto images = device_->make_resident_images(kImages * 256);
  ASSERT_TRUE(images) << images.error().message();
  EXPECT_GE((*images)->bytes(), kImages * 256u);
  std::vector<std::uint64_t> addresses;
  for (int image = 0; image < kImages; ++image) {
    std::vector<std::byte> pixels(kWidth * kHeight * 3);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = byte_of(image, i);
    const auto address = (*images)->store(pixels);
    ASSERT_TRUE(address) << address.error().message();
    addresses.push_back(*address);
  }
  EXPECT_TRUE((*images)->store(std::vector<std::byte>(20'000))) << "more than was reserved";
  const auto other = GetParam().make();
  ASSERT_TRUE(other->makes_elements());
  auto lease = memory::Lease::take(other->allocator(), kRows * kStride);
  ASSERT_TRUE(lease);
  for (std::size_t row = 0; row < kRows; ++row) {
    cuda::CachedRow entry{.pixels = row == 4 ? 0 : addresses[static_cast<std::size_t>(image_of(row))],
                          .stride = kWidth * 3,
                          .left = static_cast<std::int32_t>(row % 4),
                          .top = 1,
                          .width = 7,
                          .height = 5,
                          .shift_x = -1,
                          .shift_y = 1,
                          .flags = row % 2 == 0 ? cuda::CachedRow::kMirrored : 0u,
                          .border = static_cast<std::uint32_t>(row % 4),
                          .fill = 0x030201};
    if (row % 2 == 1) {
      entry.colours = 2;
      entry.colour[0] = {cuda::ColourChange::kContrast, std::bit_cast<std::uint32_t>(0.5f + static_cast<float>(row))};
      entry.colour[1] = {cuda::ColourChange::kHue, static_cast<std::uint32_t>(40 * row)};
    }
    std::memcpy((*lease)->data() + row * kStride, &entry, sizeof entry);
  }
  const std::vector<std::byte> filled((*lease)->data(), (*lease)->data() + kRows * kStride);
  const Finish finish{.made_bytes = kMade,
                      .images = {{.from_resident = Finish::Images::FromResident{0, kStride, kRows},
                                  .to = 0,
                                  .rows = kRows,
                                  .size = {5, 7},
                                  .layout = Layout::kNhwc,
                                  .dtype = DType::kUint8}},
                      .scratch_bytes = kRows * kRow,
                      .resident = *images};
  auto begun = other->begin_making(std::move(*lease), finish);
  ASSERT_TRUE(begun) << begun.error().message();
  const std::vector<std::byte> found = arrived(*begun);
  images = std::unexpected(Error{});

  std::vector<std::uint8_t> pixels(kWidth * kHeight * 3), expected(kRow);
  for (std::size_t row = 0; row < kRows; ++row) {
    alignas(8) std::byte one[kStride];
    std::memcpy(one, filled.data() + row * kStride, kStride);
    auto& entry = *reinterpret_cast<cuda::CachedRow*>(one);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(byte_of(image_of(row), i));
    if (entry.pixels != 0) entry.pixels = reinterpret_cast<std::uintptr_t>(pixels.data());
    const cuda::CachedRowsJob job{.in = reinterpret_cast<const std::uint8_t*>(one),
                                  .in_stride = kStride,
                                  .out = expected.data(),
                                  .out_stride = kRow,
                                  .rows = 1,
                                  .width = 7,
                                  .height = 5,
                                  .channels = 3};
    cuda::run_on_cpu(job);
    cuda::change_colours_on_cpu(job);
    ASSERT_EQ(std::memcmp(found.data() + row * kRow, expected.data(), kRow), 0) << "row " << row;
  }
}

TEST_P(DeviceContract, LeasesOutliveTheDevice) {
  auto lease = memory::Lease::take(device_->allocator(), 1 << 20);
  ASSERT_TRUE(lease);
  device_.reset();
  std::memset((*lease)->data(), 1, 1 << 20);
}

TEST_P(DeviceContract, LiveLeasesNeverOverlap) {
  std::vector<std::shared_ptr<memory::Lease>> leases;
  for (int i = 0; i < 20; ++i) {
    auto lease = memory::Lease::take(device_->allocator(), 100'000);
    ASSERT_TRUE(lease);
    std::memset((*lease)->data(), i, 100'000);
    leases.push_back(std::move(*lease));
    if (i % 3 == 2) leases.erase(leases.begin());
  }
  for (const auto& lease : leases)
    for (std::size_t i = 1; i < 100'000; ++i) ASSERT_EQ(lease->data()[i], lease->data()[0]);
}

TEST_P(DeviceContract, ManyThreadsMayAllocateAndRelease) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) {
        auto lease = memory::Lease::take(device_->allocator(), 10'000);
        ASSERT_TRUE(lease);
        std::memset((*lease)->data(), t, 10'000);
        ASSERT_EQ((*lease)->data()[9'999], static_cast<std::byte>(t));
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_P(DeviceContract, SaysSoWhenThereIsNoMemory) {
  EXPECT_FALSE(memory::Lease::take(device_->allocator(), std::size_t{1} << 60));
}

}  // namespace feedline::device
