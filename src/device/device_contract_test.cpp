// SPDX-License-Identifier: Apache-2.0
#include "device/device_contract.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/fake_driver.h"

namespace feedline::device {
namespace {

std::unique_ptr<cuda::FakeDriver> fake;

DeviceUnderTest faked(const char* name, bool held, const char* file) {
  return {.name = name,
          .make =
              [held, file] {
                if (!fake) fake = std::make_unique<cuda::FakeDriver>(2, cuda::kFakeBytes, 12'060, file);
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

// ---- a real GPU, with FEEDLINE_REAL_CUDA=1: tools/gpu_check ----

template <typename Call>
Call of_driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(library, name));
}

std::vector<std::byte> copied_back(const Begun& begun) {
  std::vector<std::byte> bytes(begun.memory->bytes());
  void* context = nullptr;
  EXPECT_EQ(of_driver<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
  EXPECT_EQ(of_driver<int (*)(void*)>("cuCtxSetCurrent")(context), 0);
  const auto copy = of_driver<int (*)(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2");
  EXPECT_EQ(copy(bytes.data(), reinterpret_cast<std::uint64_t>(begun.memory->data()), bytes.size()), 0);
  EXPECT_EQ(of_driver<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
  return bytes;
}

std::vector<DeviceUnderTest> real_gpus() {
  if (std::getenv("FEEDLINE_REAL_CUDA") == nullptr) return {};
  return {{.name = "gpu", .make = [] { return *cuda_device(0); }, .read = &copied_back}};
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceContract, testing::ValuesIn(real_gpus()));
INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(DeviceUnderTest{"host", &host_device}));
// "held": the GPU does no work until a caller waits for it.
INSTANTIATE_TEST_SUITE_P(FakeCuda, DeviceContract,
                         testing::Values(faked("at_once", false, FEEDLINE_FAKE_CUDA),
                                         faked("held", true, FEEDLINE_FAKE_CUDA),
                                         faked("copies_early", true, FEEDLINE_FAKE_CUDA_EARLY)));

}  // namespace
}  // namespace feedline::device
