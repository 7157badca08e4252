// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/spilled_array.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/test_conditions.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

class SpilledArrayTest : public testing::Test {
 protected:
  SpilledArrayTest() {
    ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1);
    base::test_conditions().block_cache_bytes = 100;
  }
  ~SpilledArrayTest() override { base::test_conditions() = {}; }

  // Appends numbers up to `end`, and checks all of them.
  static void grow(SpilledArray<std::uint64_t>& array, std::uint64_t end) {
    for (std::uint64_t i = array.size(); i < end; ++i) array.push_back(3 * i);
    array.seal();
    ASSERT_EQ(array.values().size(), end);
    for (std::uint64_t i = 0; i < end; ++i) ASSERT_EQ(array[i], 3 * i);
  }

  storage::TemporaryFolder folder_;
};

TEST_F(SpilledArrayTest, HasItsElementsInMemoryAndInAFile) {
  SpilledArray<std::uint64_t> array;
  for (const std::uint64_t end : {0, 1, 12, 13, 14, 1000, 1001}) grow(array, end);
  SpilledArray<std::uint64_t> moved = std::move(array);
  grow(moved, 2000);
}

TEST_F(SpilledArrayTest, StaysInMemoryIfThereIsNoFolder) {
  folder_.write("file", "");
  ::setenv("XDG_CACHE_HOME", folder_.path("file").c_str(), 1);
  SpilledArray<std::uint64_t> array;
  grow(array, 1000);
  grow(array, 1100);
}

TEST_F(SpilledArrayTest, LongElementsAreOneAppend) {
  SpilledArray<char> text;
  const std::string part(150, 'x');
  for (int i = 0; i < 5; ++i) text.append(part);
  text.seal();
  EXPECT_EQ(std::string(text.values().begin(), text.values().end()), std::string(750, 'x'));
}

}  // namespace
}  // namespace feedline::format
