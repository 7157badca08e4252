// SPDX-License-Identifier: Apache-2.0
#include "format/sources/source_list.h"

#include <gtest/gtest.h>

#include "storage/local_storage.h"

namespace feedline::format {
namespace {

std::string expanded(const std::string& text) {
  const auto names = expand_braces(text);
  if (!names) return "error: " + names.error().what;
  std::string all;
  for (const std::string& name : *names) all += (all.empty() ? "" : " ") + name;
  return all;
}

TEST(SourceList, ExpandsAsBash) {
  EXPECT_EQ(expanded("a.tar"), "a.tar");
  EXPECT_EQ(expanded("s/{000..003}.tar"), "s/000.tar s/001.tar s/002.tar s/003.tar");
  EXPECT_EQ(expanded("{8..11}"), "8 9 10 11");
  EXPECT_EQ(expanded("{08..11}"), "08 09 10 11");
  EXPECT_EQ(expanded("{8..011}"), "008 009 010 011");
  EXPECT_EQ(expanded("{3..1}"), "3 2 1");
  EXPECT_EQ(expanded("{-1..1}"), "-1 0 1");
  EXPECT_EQ(expanded("{-01..1}"), "-01 000 001");
  EXPECT_EQ(expanded("{0..10..5}"), "0 5 10");
  EXPECT_EQ(expanded("{10..0..-5}"), "10 5 0");
  EXPECT_EQ(expanded("{a..e..2}"), "a c e");
  EXPECT_EQ(expanded("{train,val}-{0..1}.tar"), "train-0.tar train-1.tar val-0.tar val-1.tar");
  EXPECT_EQ(expanded("x{a,b{1..3},}y"), "xay xb1y xb2y xb3y xy");
  EXPECT_EQ(expanded("{{a,b},c}"), "a b c");
  EXPECT_EQ(expanded("{5..5}"), "5");
}

TEST(SourceList, RefusesMalformedBraces) {
  for (const char* text :
       {"{0..3", "0..3}", "a}{b", "{}", "{abc}", "{1..}", "{1..x}", "{1..2..3..4}", "{a..10}", "{1...3}", "{a,{b}",
        "{0..99999999999}", "{0..9999}{0..9}{0..9999}", "{1..99999999999999999999}"})
    EXPECT_TRUE(expanded(text).starts_with("error: ")) << text << " gave " << expanded(text).substr(0, 100);
  EXPECT_TRUE(expanded(std::string(100'000, '{')).starts_with("error: "));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep = "{a," + deep + "}";
  EXPECT_TRUE(expanded(deep).starts_with("error: "));
}

TEST(SourceList, SplitsAtDoubleColons) {
  EXPECT_EQ(split_list("a::b:c::d"), (std::vector<std::string>{"a", "b:c", "d"}));
  EXPECT_EQ(split_list("a"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(split_list("a::"), (std::vector<std::string>{"a", ""}));
}

TEST(SourceList, UrlsAreLocatedPartByPart) {
  const auto source_of = [](const std::string& text) {
    const auto located = locate(text);
    return located ? located->source : "error: " + located.error().message();
  };
  for (const char* path : {"a", "/a/{0..3}.tar", "a::b//c", "", "a::", "./s3://x"}) EXPECT_EQ(source_of(path), path);
  EXPECT_EQ(source_of("file:///a%20b/{0..3}.tar::c::file://localhost/d"), "/a b/{0..3}.tar::c::/d");
  EXPECT_EQ(locate("a")->storage, storage::local_storage());
  EXPECT_NE(source_of("a::az://bucket//k").find("'az://bucket//k': this version has no reader"), std::string::npos);
  const auto two = locate("a::other", [](const std::string& part) -> Result<storage::Location> {
    if (part == "a") return storage::Location{storage::local_storage(), part};
    return storage::Location{std::make_shared<storage::LocalStorage>(storage::system_reads()), part};
  });
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::kConfig);
  EXPECT_NE(two.error().message().find("different storage"), std::string::npos);
}

}  // namespace
}  // namespace feedline::format
