// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: loads a fake CUDA driver (tests/fake_cuda), and controls the simulated GPU.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda/copy_stream.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "tests/fake_cuda/fake_cuda.h"

#ifndef FEEDLINE_FAKE_CUDA
#define FEEDLINE_FAKE_CUDA ""  // CMakeLists.txt sets its path
#endif

namespace feedline::device::cuda {

inline constexpr std::size_t kFakeBytes = std::size_t{1} << 30;

// A new driver with this many devices, which exists as long as this object. Only one FakeDriver may exist at a time.
class FakeDriver {
 public:
  explicit FakeDriver(int devices = 2, std::size_t bytes_each = kFakeBytes, int version = 12'060,
                      const char* file = FEEDLINE_FAKE_CUDA)
      : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    static int number = 0;
    // with a unique name, because the engine opens each name once
    link_ = std::filesystem::temp_directory_path() /
            ("fake_cuda_" + std::to_string(getpid()) + "_" + std::to_string(number++) + ".so");
    std::filesystem::create_symlink(file, link_);
    setenv("FEEDLINE_CUDA_DRIVER", link_.c_str(), 1);
    setenv("FEEDLINE_NVJPEG", link_.c_str(), 1);
    find(reset, "fake_cuda_reset");
    find(hold, "fake_cuda_hold");
    find(step, "fake_cuda_step");
    find(expect, "fake_cuda_expect");
    find(stream, "fake_cuda_stream");
    find(take, "fake_cuda_take");
    find(use, "fake_cuda_use");
    find(is_pinned, "fake_cuda_is_pinned");
    find(finish_device, "fake_cuda_finish");
    find(read, "fake_cuda_read");
    find(fail, "fake_cuda_fail");
    find(calls, "fake_cuda_calls");
    find(lose, "fake_cuda_lose");
    find(capture, "fake_cuda_capture");
    find(end, "fake_cuda_end");
    find(violations, "fake_cuda_violations");
    find(words, "fake_cuda_words");
    find(count, "fake_cuda_count");
    find(encode, "fake_nvjpeg_encode");
    reset(devices, bytes_each, version);
  }
  ~FakeDriver() {
    unsetenv("FEEDLINE_CUDA_DRIVER");
    unsetenv("FEEDLINE_NVJPEG");
    std::filesystem::remove(link_);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  decltype(&fake_cuda_reset) reset = nullptr;
  decltype(&fake_cuda_hold) hold = nullptr;
  decltype(&fake_cuda_step) step = nullptr;
  decltype(&fake_cuda_expect) expect = nullptr;
  decltype(&fake_cuda_stream) stream = nullptr;
  decltype(&fake_cuda_take) take = nullptr;
  decltype(&fake_cuda_use) use = nullptr;
  decltype(&fake_cuda_is_pinned) is_pinned = nullptr;
  decltype(&fake_cuda_finish) finish_device = nullptr;
  decltype(&fake_cuda_read) read = nullptr;
  decltype(&fake_cuda_fail) fail = nullptr;
  decltype(&fake_cuda_calls) calls = nullptr;
  decltype(&fake_cuda_lose) lose = nullptr;
  decltype(&fake_cuda_capture) capture = nullptr;
  decltype(&fake_cuda_end) end = nullptr;
  decltype(&fake_cuda_violations) violations = nullptr;
  decltype(&fake_cuda_words) words = nullptr;
  decltype(&fake_cuda_count) count = nullptr;
  decltype(&fake_nvjpeg_encode) encode = nullptr;

  // Returns a JPEG in which all channels of all pixels equal `value`.
  std::vector<std::byte> jpeg(Size size, int value, int components = 3) const {
    std::vector<std::byte> file(20'000);
    file.resize(encode(size.width, size.height, components, value, file.data(), file.size()));
    return file;
  }
  std::vector<std::byte> content(const Begun& begun) const {
    std::vector<std::byte> bytes(begun.memory->bytes());
    EXPECT_EQ(read(reinterpret_cast<std::uint64_t>(begun.memory->data()), bytes.data(), bytes.size()), 1);
    return bytes;
  }
  // Launches a kernel on the stream to check that the whole batch equals `value`.
  void expect_all(void* on, const Begun& begun, int value) const {
    expect(on, reinterpret_cast<std::uint64_t>(begun.memory->data()), begun.memory->bytes(), value);
  }
  // Completes all GPU work, and releases memory that the GPU no longer reads.
  void finish() const {
    while (step(0) != 0) {
    }
    std::ignore = cuda_device(0);  // its destruction sweeps what others have left
  }
  // Checks that the engine leaked nothing and broke no rule.
  void expect_nothing_left() const {
    finish();
    EXPECT_EQ(violations(), 0) << words();
    EXPECT_EQ(CopyStream::left_behind(), 0u);
    for (const char* what : {"pinned", "memory", "streams", "events", "contexts", "pending", "modules", "jpegs"})
      EXPECT_EQ(count(what), 0) << what;
  }

 private:
  template <typename Call>
  void find(Call& call, const char* name) {
    call = reinterpret_cast<Call>(dlsym(library_, name));
    ASSERT_NE(call, nullptr) << name;
  }
  void* const library_;
  std::filesystem::path link_;
};

// Returns a batch of `bytes` bytes that all equal `value`.
inline std::shared_ptr<memory::Lease> filled(Device& device, std::size_t bytes, int value) {
  auto lease = memory::Lease::take(device.allocator(), bytes);
  if (!lease) return nullptr;
  std::memset((*lease)->data(), value, bytes);
  return std::move(*lease);
}

}  // namespace feedline::device::cuda
