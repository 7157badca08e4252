// SPDX-License-Identifier: Apache-2.0
#include "device/device_contract.h"

namespace feedline::device {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(&host_device));

// Delivery is no copy: the batch that the user sees is the memory that the threads filled.
TEST(HostDevice, HandsTheSameMemoryOver) {
  const auto device = host_device();
  auto lease = memory::Lease::take(device->allocator(), 100);
  ASSERT_TRUE(lease);
  const std::byte* filled = (*lease)->data();
  const auto delivered = device->deliver(std::move(*lease));
  ASSERT_TRUE(delivered);
  EXPECT_EQ((*delivered)->data(), filled);
}

}  // namespace
}  // namespace feedline::device
