// SPDX-License-Identifier: Apache-2.0
#include "device/device_contract.h"

#include <memory>

#include "device/cuda/cuda_device.h"
#include "device/cuda/fake_driver.h"

namespace feedline::device {
namespace {

std::unique_ptr<cuda::FakeDriver> fake;

DeviceUnderTest faked(bool held, const char* file) {
  return {.make =
              [held, file] {
                fake = std::make_unique<cuda::FakeDriver>(2, cuda::kFakeBytes, 12'060, file);
                fake->hold(held);
                return *cuda_device(1);
              },
          .read = [](const Begun& begun) { return fake->content(begun); },
          .check_end =
              [] {
                fake->expect_nothing_left();
                fake.reset();
              }};
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(DeviceUnderTest{&host_device}));
// held: the GPU does nothing before somebody waits for it.
INSTANTIATE_TEST_SUITE_P(FakeCuda, DeviceContract,
                         testing::Values(faked(false, FEEDLINE_FAKE_CUDA), faked(true, FEEDLINE_FAKE_CUDA),
                                         faked(true, FEEDLINE_FAKE_CUDA_EARLY)));

}  // namespace
}  // namespace feedline::device
