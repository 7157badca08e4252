// SPDX-License-Identifier: Apache-2.0
// Amazon's published examples for requests to S3 (API Reference, "Signature Calculations for the Authorization
// Header"), and of its aws-sig-v4-test-suite, which is of a service named "service", the cases that S3 has: paths as
// they are sent, parameters of different names, values of headers without spaces around them.
#include "storage/s3/signature.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "storage/http/url.h"

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

struct SuiteCase {
  const char* name;
  const char* method;
  std::string path;  // not encoded
  std::map<std::string, std::string> query, headers;
  std::string body;
  const char* signature;
};

const std::string kUnreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const std::string kSuiteToken =
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUu"
    "wthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQc"
    "HNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/o"
    "LxBA==";
const std::string kForm = "application/x-www-form-urlencoded";

const std::vector<SuiteCase> kSuite{
    {"get-vanilla", "GET", "/", {}, {}, "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     {{"Param2", "value2"}, {"Param1", "value1"}},
     {},
     "",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-unreserved",
     "GET",
     "/",
     {{kUnreserved, kUnreserved}},
     {},
     "",
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-empty-query-key",
     "GET",
     "/",
     {{"Param1", "value1"}},
     {},
     "",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-utf8-query",
     "GET",
     "/",
     {{"\xe1\x88\xb4", "bar"}},
     {},
     "",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-utf8",
     "GET",
     "/\xe1\x88\xb4",
     {},
     {},
     "",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-space",
     "GET",
     "/example space/",
     {},
     {},
     "",
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"get-slashes", "GET", "/example/", {}, {}, "", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
    {"get-unreserved",
     "GET",
     "/" + kUnreserved,
     {},
     {},
     "",
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-header-value-trim",
     "GET",
     "/",
     {},
     {{"my-header1", "value1"}, {"my-header2", "\"a b c\""}},
     "",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"post-vanilla", "POST", "/", {}, {}, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-vanilla-query",
     "POST",
     "/",
     {{"Param1", "value1"}},
     {},
     "",
     "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-header-key-sort",
     "POST",
     "/",
     {},
     {{"my-header1", "value1"}},
     "",
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case",
     "POST",
     "/",
     {},
     {{"my-header1", "VALUE1"}},
     "",
     "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-sts-header-before",
     "POST",
     "/",
     {},
     {{"x-amz-security-token", kSuiteToken}},
     "",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     {},
     {{"content-type", kForm}},
     "Param1=value1",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    {"post-x-www-form-urlencoded-parameters",
     "POST",
     "/",
     {},
     {{"content-type", kForm + "; charset=utf8"}},
     "Param1=value1",
     "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe"},
};

TEST(Signature, IsAmazonsOfItsTestSuite) {
  const S3Keys keys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", 0};
  const std::string time = "20150830T123600Z";
  for (const SuiteCase& one : kSuite) {
    S3Request made{.method = one.method,
                   .host = {},
                   .path = percent_encoded(one.path, true),
                   .query = one.query,
                   .headers = one.headers,
                   .payload = base::hex_of(base::sha256(one.body))};
    made.headers["host"] = "example.amazonaws.com";
    made.headers["x-amz-date"] = time;
    EXPECT_EQ(signature_of(canonical_request(made), keys, time, "us-east-1", "service"), one.signature) << one.name;
  }
}

TEST(Signature, TheTextThatIsSignedIsAmazonsOfItsTestSuite) {
  S3Request made{.method = "GET",
                 .host = {},
                 .path = "/",
                 .query = {{"Param2", "value2"}, {"Param1", "value1"}},
                 .headers = {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
                 .payload = base::hex_of(base::sha256(""))};
  EXPECT_EQ(canonical_request(made),
            "GET\n/\nParam1=value1&Param2=value2\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
            "host;x-amz-date\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Signature, AQueryIsSortedAndEncoded) {
  EXPECT_EQ(query_text({{"prefix", "a b/c+d=e"}, {"list-type", "2"}}), "list-type=2&prefix=a%20b%2Fc%2Bd%3De");
}

}  // namespace
}  // namespace feedline::storage
