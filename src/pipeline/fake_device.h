// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: host memory of which a test decides how much there is and whether pages are to spare, and that writes down
// for which pages it was asked.

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"

namespace feedline::pipeline {

class FakeAllocator final : public memory::Allocator {
 public:
  std::atomic<std::size_t> blocks = 1000;  // that may still be taken
  std::atomic<std::uint64_t> spare = 0;
  std::function<void()> before_allocate;  // the next time
  std::function<void()> before_reuse;
  struct Range {
    std::byte* data;
    std::size_t first, last;
  };
  std::vector<Range> asked;

  Result<std::byte*> allocate(std::size_t bytes) override {
    if (const auto once = std::exchange(before_allocate, nullptr)) once();
    if (blocks == 0) return std::unexpected(Error{ErrorCode::kStorage, "no memory for a batch", {}, 0});
    --blocks;
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  }
  void release(std::byte* data, std::size_t) override {
    ++blocks;
    std::free(data);
  }
  void reuse_pages(std::byte* data, std::size_t first, std::size_t last) override {
    if (before_reuse) before_reuse();
    asked.push_back({data, first, last});
  }
  std::uint64_t spare_pages() const override { return spare; }
};

class FakeDevice final : public device::Device {
 public:
  std::shared_ptr<FakeAllocator> memory = std::make_shared<FakeAllocator>();
  std::function<void()> before_deliver;
  bool fails = false;

  std::string_view name() const override { return "fake"; }
  std::shared_ptr<memory::Allocator> allocator() override { return memory; }
  Result<std::shared_ptr<memory::Lease>> deliver(std::shared_ptr<memory::Lease> filled) override {
    if (before_deliver) before_deliver();
    if (fails) return std::unexpected(Error{ErrorCode::kStorage, "the device is gone", {}, 0});
    return filled;
  }
};

}  // namespace feedline::pipeline
