// SPDX-License-Identifier: Apache-2.0
// Names on the Hub and the parsers of its answers.
#include "storage/hub/hub_answers.h"

#include <gtest/gtest.h>

#include <string>

#include "storage/hub/hub_name.h"

namespace feedline::storage {
namespace {

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

std::string parts_of(std::string_view url) {
  const auto name = hub_name(url);
  return name ? name->repository + "|" + name->revision + "|" + name->path : "-";
}

TEST(HubName, HasARevisionAndAPath) {
  EXPECT_EQ(parts_of("hf://datasets/org/name"), "org/name|main|");
  EXPECT_EQ(parts_of("HF://datasets/org/name/"), "org/name|main|");
  EXPECT_EQ(parts_of("hf://datasets/org/name/a/b.csv"), "org/name|main|a/b.csv");
  EXPECT_EQ(parts_of("hf://datasets/org/name@v1.0/a b"), "org/name|v1.0|a b");
  EXPECT_EQ(parts_of("hf://datasets/org/name@a%2Fb/c"), "org/name|a/b|c");
  EXPECT_EQ(parts_of("hf://datasets/org/name@refs/pr/12"), "org/name|refs/pr/12|");
  EXPECT_EQ(parts_of("hf://datasets/org/name@refs/convert/parquet/c/train"), "org/name|refs/convert/parquet|c/train");
  EXPECT_EQ(parts_of("hf://datasets/org/name@~parquet/c"), "org/name|refs/convert/parquet|c");
  EXPECT_EQ(parts_of("hf://datasets/org/name/a@b"), "org/name|main|a@b");
  for (const char* url : {"hf://datasets/name", "hf://datasets/", "hf://org/name", "hf://models/org/name", "hf:/x", "",
                          "hf://datasets/org/na me", "hf://datasets/../name", "hf://datasets/org/name@",
                          "hf://datasets/org/name@../x", "hf://datasets/org/name@%zz", "hf://datasets/org/name@a\nb/x"})
    EXPECT_EQ(parts_of(url), "-") << url;
}

TEST(HubName, IsTheSameAfterARoundTrip) {
  for (const char* url : {"hf://datasets/o/n@main/", "hf://datasets/o/n@a%2Fb/c/d", "hf://datasets/o/n@refs/pr/1/x",
                          "hf://datasets/o/n@refs%2Fa/b"})
    EXPECT_EQ(hub_name(url)->text(), url);
  EXPECT_TRUE(is_commit(kCommit));
  for (const std::string revision : {"main", "0123456", "0123456789ABCDEF0123456789abcdef01234567"})
    EXPECT_FALSE(is_commit(revision)) << revision;
}

TEST(HubAnswers, AListingHasTheHashesOfLargeFiles) {
  const auto files = parse_hub_tree(
      R"([{"type":"directory","path":"data","size":0,"oid":"1"},
          {"type":"file","path":"data/a.parquet","size":9,"oid":"2","lfs":{"oid":"3","size":9,"pointerSize":1}},
          {"type":"file","path":"data/b","size":7,"oid":"4","xetHash":"5","new":[{}]},{"path":"c","oid":"6","lfs":null}])");
  ASSERT_TRUE(files) << files.error().message();
  ASSERT_EQ(files->size(), 4u);
  EXPECT_TRUE((*files)[0].is_folder);
  EXPECT_EQ((*files)[1].hash, "3");
  EXPECT_TRUE((*files)[1].is_large);
  EXPECT_EQ((*files)[2].hash, "4");
  EXPECT_TRUE((*files)[2].is_large);
  EXPECT_EQ((*files)[2].bytes, 7u);
  EXPECT_FALSE((*files)[3].is_large);
}

TEST(HubAnswers, OtherListingsAreRefused) {
  for (const char* json :
       {"", "{}", "[", "[{}]", R"([{"path":"../x"}])", R"([{"path":"/x"}])", R"([{"path":"a//b"}])",
        R"([{"path":"a/"}])", R"([{"path":"x","size":-1}])", R"([{"path":"x","size":1e99}])", "<html>"}) {
    const auto files = parse_hub_tree(json);
    ASSERT_FALSE(files) << json;
    EXPECT_NE(files.error().message().find("HF_ENDPOINT"), std::string::npos) << files.error().message();
  }
}

TEST(HubAnswers, ARevisionIsAWholeCommit) {
  const auto revision = parse_hub_revision(R"({"id":"new/name","sha":")" + kCommit + R"(","tags":[1]})");
  ASSERT_TRUE(revision) << revision.error().message();
  EXPECT_EQ(revision->repository, "new/name");
  EXPECT_EQ(revision->commit, kCommit);
  EXPECT_EQ(parse_hub_revision(R"({"id":"a/../b","sha":")" + kCommit + R"("})")->repository, "");
  for (const char* json : {"", "{}", R"({"sha":"main"})", "[]"}) EXPECT_FALSE(parse_hub_revision(json)) << json;
}

TEST(HubAnswers, ASignedUrlStatesWhenItExpires) {
  EXPECT_EQ(expiry_of_url("https://h/x?Expires=1800000000&Signature=s"), 1800000000);
  EXPECT_EQ(expiry_of_url("https://h/x?X-Amz-Date=20260102T030405Z&X-Amz-Expires=3600"), 1767326645);
  for (const char* url : {"https://h/x", "https://h/x?expires=1", "https://h/x?Expires=x", "https://h/x?Expires=-1",
                          "https://h/x?X-Amz-Date=20261302T030405Z&X-Amz-Expires=1", "https://h/x?X-Amz-Expires=3600"})
    EXPECT_FALSE(expiry_of_url(url)) << url;
}

}  // namespace
}  // namespace feedline::storage
