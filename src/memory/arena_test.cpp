// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace feedline::memory {
namespace {

constexpr std::size_t kMaxRetained = 1 << 20;

std::uintptr_t address(const void* given) { return reinterpret_cast<std::uintptr_t>(given); }

TEST(Arena, GivesAlignedMemoryThatDoesNotOverlap) {
  Arena arena(kMaxRetained);
  std::vector<std::pair<unsigned char*, std::size_t>> given;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::size_t bytes = i * i * 7 % 30'000;  // includes 0; many blocks in total
    auto* const memory = static_cast<unsigned char*>(arena.allocate(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(address(memory) % Arena::kAlignment, 0u);
    std::memset(memory, static_cast<int>(i), bytes);
    given.emplace_back(memory, bytes);
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t b = 0; b < given[i].second; ++b) ASSERT_EQ(given[i].first[b], i % 256);
}

TEST(Arena, GivesTheSameMemoryAgain) {
  Arena arena(kMaxRetained);
  const auto fill = [&arena] {
    std::vector<void*> given;
    for (int i = 0; i < 30; ++i) given.push_back(arena.allocate(10'000));
    return given;
  };
  fill();
  arena.reset();  // several blocks become one
  const auto first = fill();
  const std::size_t held = arena.held_bytes();
  for (int round = 0; round < 3; ++round) {
    arena.reset();
    EXPECT_EQ(fill(), first);
    EXPECT_EQ(arena.held_bytes(), held);
  }
}

TEST(Arena, KeepsNoMoreThanItMay) {
  Arena arena(kMaxRetained);
  for (const std::size_t large : {kMaxRetained + 1, 10 * kMaxRetained}) {
    ASSERT_NE(arena.allocate(large), nullptr);
    EXPECT_GE(arena.held_bytes(), large);
    arena.reset();
    EXPECT_EQ(arena.held_bytes(), 0u);
  }
  for (int i = 0; i < 15; ++i) ASSERT_NE(arena.allocate(kMaxRetained / 16), nullptr);
  arena.reset();
  EXPECT_GE(arena.held_bytes(), kMaxRetained / 16 * 15);
  EXPECT_LE(arena.held_bytes(), kMaxRetained);
}

TEST(Arena, SaysThatThereIsNoMemory) {
  Arena arena(kMaxRetained);
  EXPECT_EQ(arena.allocate(std::numeric_limits<std::size_t>::max()), nullptr);
  EXPECT_EQ(arena.allocate(std::numeric_limits<std::size_t>::max() - 100), nullptr);
  EXPECT_NE(arena.allocate(8), nullptr);
}

TEST(Arena, TheAddressSanitizerSeesOverrunsAndWhatWasTakenBack) {
#if defined(__SANITIZE_ADDRESS__)
  Arena arena(kMaxRetained);
  auto* const memory = static_cast<char*>(arena.allocate(100));
  arena.allocate(100);
  EXPECT_FALSE(__asan_address_is_poisoned(memory + 99));
  EXPECT_TRUE(__asan_address_is_poisoned(memory + 100));
  arena.reset();
  EXPECT_TRUE(__asan_address_is_poisoned(memory));
#else
  GTEST_SKIP() << "not under the address sanitizer";
#endif
}

}  // namespace
}  // namespace feedline::memory
