// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "device/device.h"

namespace feedline::device {
namespace {

// Delivery does not copy: the user's batch uses the memory that the threads filled.
TEST(HostDevice, HandsTheSameMemoryOver) {
  const auto device = host_device();
  auto lease = memory::Lease::take(device->allocator(), 100);
  ASSERT_TRUE(lease);
  const std::byte* filled = (*lease)->data();
  const auto begun = device->begin(std::move(*lease));
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->memory->data(), filled);
  EXPECT_EQ(begun->ready, nullptr) << "there is nothing to wait for";
}

// Sanitizers allocate shadow memory for each page that is written, so memory is not measured.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kResidentMemoryIsOurs = false;
#else
constexpr bool kResidentMemoryIsOurs = true;
#endif

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Up to 8 MiB of released small blocks are cached and reused.
TEST(HostDevice, KeepsSmallBlocksAndNotWithoutEnd) {
  const auto allocator = host_device()->allocator();
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(*allocator->allocate(kBytes));
  for (std::byte* block : blocks) allocator->release(block, kBytes);
  std::set<std::byte*> again;
  for (int i = 0; i < 8; ++i) again.insert(*allocator->allocate(kBytes));
  EXPECT_EQ(again.size(), 8u);
  for (std::byte* block : again) {
    EXPECT_TRUE(std::ranges::find(blocks, block) < blocks.begin() + 8) << "one of those released first";
    allocator->release(block, kBytes);
  }
}

// Batches with fields of variable size differ in size: the last one's pages are used for a smaller and a larger one.
TEST(HostDevice, UsesTheLastBlocksPagesForABlockOfAnySize) {
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  const auto allocator = host_device()->allocator();
  std::byte* block = *allocator->allocate(40 * kMebi);
  std::memset(block, 1, 40 * kMebi);
  allocator->release(block, 40 * kMebi);
  block = *allocator->allocate(31 * kMebi);
  for (std::size_t at = 0; at < 31 * kMebi; at += 4096) ASSERT_EQ(block[at], std::byte{1}) << at << ": a new page";
  allocator->release(block, 31 * kMebi);
  block = *allocator->allocate(50 * kMebi);
  for (std::size_t at = 0; at < 30 * kMebi; at += 4096) ASSERT_EQ(block[at], std::byte{1}) << at << ": a new page";
  std::memset(block, 2, 50 * kMebi);  // all of it is writable
  allocator->release(block, 50 * kMebi);
}

// A loop that drops each batch when it receives the next one uses two blocks, not three.
TEST(HostDevice, PutsTheLastBatchsPagesUnderTheNextButOne) {
  constexpr std::size_t kBytes = std::size_t{40} << 20, kRow = std::size_t{600'000};
  const auto allocator = host_device()->allocator();
  const auto take = [&] { return std::move(*memory::Lease::take(allocator, kBytes)); };
  auto older = take();
  std::memset(older->data(), 1, kBytes);
  auto newer = take();
  std::memset(newer->data(), 2, kBytes);
  const std::size_t two_blocks = resident_bytes();
  for (int turn = 0; turn < 10; ++turn) {
    const auto value = static_cast<char>(10 + turn);
    auto next = take();
    const std::size_t written = kRow * static_cast<std::size_t>(1 + turn % 3);
    std::memset(next->data(), value, written);
    std::memset(next->data() + kBytes - 100, value, 100);  // labels, after the images
    older.reset();
    allocator->reuse_pages(next->data(), written, kBytes - 100);
    for (const std::size_t at : {std::size_t{0}, written - 1, kBytes - 100, kBytes - 1})
      ASSERT_EQ(next->data()[at], static_cast<std::byte>(value)) << "at " << at;
    std::memset(next->data() + written, value, kBytes - 100 - written);
    if (kResidentMemoryIsOurs) {
      EXPECT_LT(resident_bytes(), two_blocks + (std::size_t{8} << 20)) << "turn " << turn;
    }
    EXPECT_EQ(newer->data()[kBytes / 2], static_cast<std::byte>(turn == 0 ? 2 : 9 + turn))
        << "another block was touched";
    older = std::move(newer);
    newer = std::move(next);
  }
}

}  // namespace
}  // namespace feedline::device
