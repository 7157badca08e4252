// SPDX-License-Identifier: Apache-2.0
#include "storage/http/url.h"

#include <gtest/gtest.h>

namespace feedline::storage {
namespace {

TEST(Url, FallsIntoItsParts) {
  const auto parts = parts_of_url("https://me:pa@ss@host:8443/a/b.tar?x=1&y#there");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->scheme, "https");
  EXPECT_EQ(parts->user, "me:pa@ss");
  EXPECT_EQ(parts->authority, "host:8443");
  EXPECT_EQ(parts->path, "/a/b.tar");
  EXPECT_EQ(parts->query, "x=1&y");
  EXPECT_EQ(parts_of_url("http://host?x")->query, "x");
  EXPECT_EQ(parts_of_url("http://host")->path, "");
  for (const char* url : {"", "host/x", "://host", "http://", "http:///x", "http://me@/x"})
    EXPECT_FALSE(parts_of_url(url)) << url;
}

TEST(Url, SecretsAreHiddenAndComeBackForTheirHostAlone) {
  for (const std::string url :
       {"https://me:word@host/{0..3}.tar", "https://host/a.tar?X-Amz-Credential=word&X-Amz-Signature=word&part=1",
        "https://host/a.tar?part=1&sig=word", "http://host/a?Signature=word&AWSAccessKeyId=word&Expires=9"}) {
    const std::string shown = without_secrets(url);
    EXPECT_EQ(shown.find("word"), shown.npos) << shown;
    EXPECT_EQ(with_secrets(shown), url);
    EXPECT_EQ(without_secrets(shown), shown);
    EXPECT_EQ(without_secrets(url), shown) << "the same name each time";
    std::string elsewhere = shown;
    elsewhere.replace(elsewhere.find("host"), 4, "evil");
    EXPECT_EQ(with_secrets(elsewhere).find("word"), std::string::npos) << with_secrets(elsewhere);
  }
  for (const std::string url : {"https://host/a.tar?part=1&flag&x=", "http://host", "/local/path?sig=x", "hidden-0"})
    EXPECT_EQ(with_secrets(without_secrets(url)), url);
}

TEST(Url, IsTheSameHoweverItIsWrittenAndSigned) {
  const std::string normal = "https://host/A.tar?part=1";
  for (const std::string url : {"HTTPS://Host:443/A.tar?part=1", "https://me:word@host/A.tar?part=1#x",
                                "https://host/A.tar?X-Amz-Signature=1&part=1&X-Amz-Date=2"})
    EXPECT_EQ(normal_url(url), normal) << url;
  for (const std::string url : {"https://host/a.tar?part=1", "https://host/A.tar?part=2", "http://host/A.tar?part=1",
                                "https://host:8443/A.tar?part=1"})
    EXPECT_NE(normal_url(url), normal) << url;
  EXPECT_EQ(normal_url("http://host:80"), "http://host/");
}

TEST(Url, IsEncodedAsAmazonWantsIt) {
  EXPECT_EQ(percent_encoded("a b+c=d/é~-._", true), "a%20b%2Bc%3Dd/%C3%A9~-._");
  EXPECT_EQ(percent_encoded("a/b", false), "a%2Fb");
}

}  // namespace
}  // namespace feedline::storage
