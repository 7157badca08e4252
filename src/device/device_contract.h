// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every Device keeps. A device registers with
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(&host_device));

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/device.h"

namespace feedline::device {

class DeviceContract : public testing::TestWithParam<std::function<std::shared_ptr<Device>()>> {
 protected:
  std::shared_ptr<Device> device_ = GetParam()();
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

TEST_P(DeviceContract, DeliversWhatWasFilled) {
  auto lease = memory::Lease::take(device_->allocator(), 1000);
  ASSERT_TRUE(lease);
  std::memset((*lease)->data(), 7, 1000);
  auto delivered = device_->deliver(std::move(*lease));
  ASSERT_TRUE(delivered);
  EXPECT_EQ((*delivered)->data()[999], std::byte{7});
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
