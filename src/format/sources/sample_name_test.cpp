// SPDX-License-Identifier: Apache-2.0
#include "format/sources/sample_name.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "base/rounds.h"

namespace feedline::format {
namespace {

std::string split(std::string_view name) {
  const auto parts = split_sample_name(name);
  return parts ? std::string(parts->key) + "|" + std::string(parts->extension) : "none";
}

TEST(SampleName, SplitsAsWebDatasetDoes) {
  EXPECT_EQ(split("0001.jpg"), "0001|jpg");
  EXPECT_EQ(split("a/b/0001.seg.PNG"), "a/b/0001|seg.PNG");
  EXPECT_EQ(split("a.b/c.jpg"), "a.b/c|jpg");
  EXPECT_EQ(split("x/1.5.jpg"), "x/1|5.jpg");
  EXPECT_EQ(split("./a.jpg"), "./a|jpg");
  EXPECT_EQ(split("a/.hidden.jpg"), "a/|hidden.jpg");
  EXPECT_EQ(split("a.b/c/.h.jpg"), "a.b/c/|h.jpg");
  EXPECT_EQ(split("a.b/.h.jpg"), "none");
  EXPECT_EQ(split("a//.x"), "a//|x");
  EXPECT_EQ(split("/.x"), "/|x");
  EXPECT_EQ(split(".hidden"), "none");
  EXPECT_EQ(split("README"), "none");
  EXPECT_EQ(split("a.b/README"), "none");
  EXPECT_EQ(split("x."), "x|");
  EXPECT_EQ(split("x/..jpg"), "x/|.jpg");
  EXPECT_EQ(split(""), "none");
  EXPECT_EQ(split("/"), "none");
  EXPECT_EQ(split("."), "none");
}

// Compares split_sample_name() with the regular expression. ECMAScript's "." does not match '\r', so this character is
// not tested. "$" matches only at the end of the text, because [^/]* always extends to the end.
TEST(SampleName, AgreesWithTheExpression) {
  const std::regex name_expression("^((?:.*/|)[^.]+)[.]([^/]*)$");
  const std::regex reserved_expression("^__[^/]*__(\n?$|/)");
  std::mt19937 random(7);
  const std::string alphabet = "a./_\n";
  for (int i = 0; i < base::rounds(200'000); ++i) {
    std::string name(random() % 10, '\0');
    for (char& c : name) c = alphabet[random() % alphabet.size()];
    std::smatch match;
    const bool matched = std::regex_match(name, match, name_expression);
    ASSERT_EQ(split(name), matched ? match[1].str() + "|" + match[2].str() : "none") << ::testing::PrintToString(name);
    std::string lines = name;  // in ECMAScript, a multiline "$" would match at a newline inside
    if (lines.find('\n') == std::string::npos) {
      ASSERT_EQ(is_reserved_name(lines), std::regex_search(lines, reserved_expression))
          << ::testing::PrintToString(lines);
    }
  }
}

TEST(SampleName, KnowsReservedNames) {
  for (const char* name : {"__meta__", "__meta__/x.jpg", "____", "__a__b__", "__a__\n"})
    EXPECT_TRUE(is_reserved_name(name)) << name;
  for (const char* name : {"__meta__.jpg", "___", "a/__meta__", "__a/b__", "_a_", "", "__a__\nb"})
    EXPECT_FALSE(is_reserved_name(name)) << name;
}

TEST(SampleName, LowersAsciiOnly) { EXPECT_EQ(to_lower("JpG.\xc3\x89Z"), "jpg.\xc3\x89z"); }

}  // namespace
}  // namespace feedline::format
