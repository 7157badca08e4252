// SPDX-License-Identifier: Apache-2.0
#include "storage/registry.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

std::string object_of(const std::string& url) {
  const auto location = open(url);
  EXPECT_TRUE(location) << location.error().message();
  return location ? location->object : std::string("(error)");
}

std::string refusal_of(const std::string& url) {
  const auto location = open(url);
  EXPECT_FALSE(location) << url;
  if (location) return {};
  EXPECT_EQ(location.error().code, ErrorCode::kConfig);
  EXPECT_NE(location.error().what.find("'" + url + "'"), std::string::npos) << location.error().what;
  return location.error().what;
}

TEST(Registry, APathIsItselfToTheByte) {
  for (const std::string path : {"train", "/data/train/", "a//b/../c", "100%25/x", "~/x", "a:b", "://x", "", "1s3://x",
                                 "data/s3://x", "./s3://bucket", "{000..146}.tar"})
    EXPECT_EQ(object_of(path), path);
  EXPECT_EQ(open("x")->storage, local_storage());
}

TEST(Registry, AFileUrlIsAPathDecoded) {
  EXPECT_EQ(object_of("file:///data/train"), "/data/train");
  EXPECT_EQ(object_of("FILE://localhost/data"), "/data");
  EXPECT_EQ(object_of("file:///a%20b/%7Bx%7d//c%25"), "/a b/{x}//c%");
  EXPECT_EQ(object_of("file:///a?b#c+d"), "/a?b#c+d");
  EXPECT_EQ(open("file:///x")->storage, local_storage());
  for (const std::string url : {"file://data/train", "file://", "file://host"})
    EXPECT_NE(refusal_of(url).find("has an absolute path and no host"), std::string::npos);
  for (const std::string url : {"file:///100%", "file:///%2", "file:///%zz", "file:///a%00b"})
    EXPECT_NE(refusal_of(url).find("%25"), std::string::npos);
}

TEST(Registry, SchemesThatNobodyReadsAreNamedWithWhatToDo) {
  for (const std::string url : {"az://bucket//key", "SFTP://b"}) {
    const std::string said = refusal_of(url);
    EXPECT_NE(said.find("no reader for " + scheme_of(url) + "://"), std::string::npos) << said;
    EXPECT_NE(said.find("copy or mount the data"), std::string::npos) << said;
  }
  const std::string said = refusal_of("flie:///data");
  EXPECT_NE(said.find("'flie' is not a known scheme"), std::string::npos) << said;
  EXPECT_NE(said.find("file://"), std::string::npos) << said;
}

TEST(Registry, AnHttpUrlIsItselfWithoutItsSecrets) {
  EXPECT_EQ(object_of("https://host/{000..146}.tar?part=1"), "https://host/{000..146}.tar?part=1");
  EXPECT_EQ(open("http://a/x")->storage, open("HTTPS://b/y")->storage) << "one list may have both";
  EXPECT_EQ(object_of("https://me:word@host/x?X-Amz-Signature=word").find("word"), std::string::npos);
  for (const std::string url : {"http://", "https:///x"}) EXPECT_NE(refusal_of(url).find("no host"), std::string::npos);
  EXPECT_NE(refusal_of("http://host/a b").find("%20"), std::string::npos);
}

TEST(Registry, AnObjectOfABucketIsItsUrl) {
  EXPECT_EQ(object_of("s3://bucket//k/{0..3} %41?#.tar"), "s3://bucket//k/{0..3} %41?#.tar") << "keys are not decoded";
  EXPECT_EQ(object_of("GS://bucket/x"), "gs://bucket/x");
  EXPECT_NE(open("s3://a/x")->storage, open("gs://a/x")->storage);
  for (const std::string url : {"s3://", "gs:///x"}) EXPECT_NE(refusal_of(url).find("no bucket"), std::string::npos);
}

TEST(Registry, WhoIsAddedGetsTheUrlAsItWasWritten) {
  Registry registry = built_in_schemes();
  registry.add("made", [](std::string_view url) -> Result<Location> {
    return Location{local_storage(), std::string(url)};
  });
  EXPECT_EQ(registry.open("made://b//k%20%zz/")->object, "made://b//k%20%zz/");
  EXPECT_EQ(registry.open("MADE://x")->object, "MADE://x");
  EXPECT_EQ(registry.open("file:///x")->object, "/x");
  EXPECT_NE(registry.open("other://x").error().what.find("file://, gs://, hf://, http://, https://, made://"),
            std::string::npos);
  EXPECT_FALSE(open("made://x")) << "one table does not change another";
}

TEST(Registry, AnIdentityIsThatOfThePlace) {
  const TemporaryFolder folder;
  folder.write("data/x.tar", "content");
  const std::string identity = identity_of(folder.path("data/x.tar"));
  std::filesystem::create_symlink("data", folder.path("link"));
  for (const std::string& way :
       {folder.path("data/../data//x.tar"), folder.path("link/x.tar"), "file://" + folder.path("data/%78.tar"),
        "file://localhost" + folder.path("link/x.tar")})
    EXPECT_EQ(identity_of(way), identity) << way;
  EXPECT_EQ(identity_of(folder.path("data/")), identity_of(folder.path("data")));
  EXPECT_EQ(identity_of(folder.path("none/")), identity_of(folder.path("none")));
  EXPECT_EQ(identity_of(folder.path("none/../none/x")), identity_of(folder.path("none/x")));
  EXPECT_NE(identity_of(folder.path("data/y.tar")), identity);
  EXPECT_EQ(identity_of("s3://b//k/../x"), "s3://b//k/../x");
}

}  // namespace
}  // namespace feedline::storage
