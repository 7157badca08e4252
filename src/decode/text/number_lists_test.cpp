// SPDX-License-Identifier: Apache-2.0
#include "decode/text/number_lists.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace feedline::decode {
namespace {

Result<Shape> read(const std::string& text, std::vector<float>& numbers) {
  return read_number_lists(std::as_bytes(std::span(text)), numbers);
}

TEST(NumberLists, AreArrays) {
  std::vector<float> numbers;
  EXPECT_EQ(*read("[[1, 2.5],\n [-3e1,4]] ", numbers), (Shape{2, 2}));
  EXPECT_EQ(numbers, (std::vector<float>{1, 2.5f, -30, 4}));
  EXPECT_EQ(*read(" [] ", numbers), Shape{0});
  EXPECT_EQ(*read("[[],[]]", numbers), (Shape{2, 0}));
  EXPECT_EQ(*read("[[[1,2]],[[3,4]]]", numbers), (Shape{2, 1, 2}));
  EXPECT_EQ(*read("[7]", numbers), Shape{1});
  EXPECT_EQ(*read("[NaN, null, Infinity, -Infinity]", numbers), Shape{4});
  EXPECT_TRUE(std::isnan(numbers[0]) && std::isnan(numbers[1]) && std::isinf(numbers[2]) && numbers[3] < 0);
}

TEST(NumberLists, AnythingElseIsAnError) {
  std::vector<float> numbers;
  for (const char* text : {"",        "3",       "{}",       "[1",      "[1,]",      "[,1]",   "[1 2]",  "[[1],[2,3]]",
                           "[1,[2]]", "[[1],2]", "[[],1]",   "[\"1\"]", "[[[[1]]]]", "[1] x",  "[true]", "[+1]",
                           "[inf]",   "[nan]",   "[[1],[]]", "[-]",     "[-inf]",    "[1e999]"}) {
    const auto shape = read(text, numbers);
    ASSERT_FALSE(shape) << text;
    EXPECT_EQ(shape.error().code, ErrorCode::kData) << text;
    EXPECT_NE(shape.error().what.find(" at byte "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace feedline::decode
