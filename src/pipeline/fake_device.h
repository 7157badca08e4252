// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: host memory of which a test decides how much there is and whether pages are to spare, and that writes down
// for which pages it was asked.

#include <cstdlib>
#include <memory>
#include <vector>

#include "device/device.h"

namespace feedline::pipeline {

class FakeAllocator final : public memory::Allocator {
 public:
  std::size_t blocks = 1000;  // that may still be taken
  std::uint64_t spare = 0;
  struct Range {
    std::byte* data;
    std::size_t first, last;
  };
  std::vector<Range> asked;

  Result<std::byte*> allocate(std::size_t bytes) override {
    if (blocks == 0) return std::unexpected(Error{ErrorCode::kStorage, "no memory for a batch", {}, 0});
    --blocks;
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  }
  void release(std::byte* data, std::size_t) override {
    ++blocks;
    std::free(data);
  }
  void reuse_pages(std::byte* data, std::size_t first, std::size_t last) override {
    asked.push_back({data, first, last});
  }
  std::uint64_t spare_pages() const override { return spare; }
};

class FakeDevice final : public device::Device {
 public:
  std::shared_ptr<FakeAllocator> memory = std::make_shared<FakeAllocator>();

  std::string_view name() const override { return "fake"; }
  std::shared_ptr<memory::Allocator> allocator() override { return memory; }
  Result<std::shared_ptr<memory::Lease>> deliver(std::shared_ptr<memory::Lease> filled) override { return filled; }
};

}  // namespace feedline::pipeline
