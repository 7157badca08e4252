// SPDX-License-Identifier: Apache-2.0
#include "storage/http/curl_buffers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

namespace feedline::storage {
namespace {

constexpr std::size_t kBuffer = kCurlBufferBytes + 1;  // as curl asks for it

TEST(CurlBuffers, ComeBackToWhoAsksNext) {
  void* const first = allocate_for_curl(kBuffer);
  void* const second = allocate_for_curl(kBuffer);
  ASSERT_TRUE(first != nullptr && second != nullptr && first != second);
  std::memset(first, 1, kBuffer);
  std::memset(second, 2, kBuffer);
  EXPECT_EQ(static_cast<char*>(first)[kBuffer - 1], 1) << "they do not overlap";
  free_of_curl(first);
  EXPECT_EQ(allocate_for_curl(kBuffer), first) << "with its pages";
  free_of_curl(first);
  free_of_curl(second);
}

TEST(CurlBuffers, AreNoLimit) {
  std::set<void*> blocks;
  for (int i = 0; i < 200; ++i) blocks.insert(allocate_for_curl(kBuffer));
  EXPECT_EQ(blocks.size(), 200u);
  EXPECT_FALSE(blocks.contains(nullptr));
  for (void* block : blocks) std::memset(block, 3, kBuffer);
  for (void* block : blocks) free_of_curl(block);
}

TEST(CurlBuffers, OfOtherSizesAndGrownOnesAreMallocs) {
  char* const text = duplicate_for_curl("text");
  EXPECT_EQ(std::string_view(text), "text");
  char* const longer = static_cast<char*>(reallocate_for_curl(text, 100));
  EXPECT_EQ(std::string_view(longer), "text");
  free_of_curl(longer);
  auto* const zeros = static_cast<char*>(allocate_zeros_for_curl(10, 10));
  EXPECT_EQ(zeros[99], 0);
  free_of_curl(zeros);
  free_of_curl(nullptr);
  auto* const buffer = static_cast<char*>(allocate_for_curl(kBuffer));
  std::memset(buffer, 7, kBuffer);
  EXPECT_EQ(reallocate_for_curl(buffer, 1000), buffer);
  auto* const grown = static_cast<char*>(reallocate_for_curl(buffer, 2 * kBuffer));
  EXPECT_EQ(grown[kBuffer - 1], 7);
  std::free(grown);  // now allocated by malloc
}

TEST(CurlBuffers, AreNeverGivenTwice) {
  std::vector<std::thread> threads;
  for (char mark = 1; mark <= 8; ++mark)
    threads.emplace_back([mark] {
      for (int i = 0; i < 2000; ++i) {
        auto* const block = static_cast<char*>(allocate_for_curl(kBuffer));
        block[0] = block[kBuffer - 1] = mark;
        std::this_thread::yield();
        EXPECT_TRUE(block[0] == mark && block[kBuffer - 1] == mark);
        free_of_curl(block);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace feedline::storage
