// SPDX-License-Identifier: Apache-2.0
// The examples that Amazon publishes for requests to S3, with their keys.
#include "storage/s3/signature.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/sha256.h"

namespace feedline::storage {
namespace {

constexpr std::int64_t kWhen = 1'369'353'600;  // 2013-05-24T00:00:00Z
const S3Keys kKeys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", 0};

S3Request request(const std::string& path) {
  S3Request made;
  made.host = "examplebucket.s3.amazonaws.com";
  made.path = path;
  return made;
}

std::string authorization(const S3Request& request, const S3Keys& keys = kKeys) {
  for (const std::string& line : signed_headers(request, keys, "us-east-1", kWhen))
    if (line.starts_with("Authorization: ")) return line;
  return {};
}

TEST(Signature, IsAmazonsOfAnObject) {
  S3Request object = request("/test.txt");
  object.headers["range"] = "bytes=0-9";
  EXPECT_EQ(authorization(object),
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Signature, IsAmazonsOfAQuery) {
  S3Request lifecycle = request("/");
  lifecycle.query = {{"lifecycle", ""}};
  EXPECT_TRUE(authorization(lifecycle).ends_with("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  S3Request list = request("/");
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_TRUE(authorization(list).ends_with("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Signature, IsAmazonsOfABody) {
  S3Request put = request("/test%24file.text");
  put.method = "PUT";
  put.headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  put.payload = base::hex_of(base::sha256("Welcome to Amazon S3."));
  EXPECT_TRUE(authorization(put).ends_with("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(Signature, ATokenIsSentAndSigned) {
  S3Keys keys = kKeys;
  keys.token = "T0";
  const auto lines = signed_headers(request("/x"), keys, "us-east-1", kWhen);
  EXPECT_NE(std::ranges::find(lines, "x-amz-security-token: T0"), lines.end());
  EXPECT_NE(authorization(request("/x"), keys).find("x-amz-date;x-amz-security-token,"), std::string::npos);
  for (const std::string& line : lines) EXPECT_EQ(line.find(kKeys.secret), std::string::npos);
}

TEST(Signature, AQueryIsSortedAndEncoded) {
  EXPECT_EQ(query_text({{"prefix", "a b/c+d=e"}, {"list-type", "2"}}), "list-type=2&prefix=a%20b%2Fc%2Bd%3De");
}

}  // namespace
}  // namespace feedline::storage
