// SPDX-License-Identifier: Apache-2.0
// Google tokens from each simulated source: how they are sent, and when they are renewed.
#include "storage/s3/google_credentials.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>

#include "storage/http/http_server_fixture.h"
#include "storage/s3/credentials.h"
#include "storage/s3/environment_fixture.h"
#include "storage/s3/rsa_key_fixture.h"
#include "storage/s3/rsa_signature.h"
#include "storage/s3/s3_storage.h"
#include "storage/storage_contract.h"
#include "storage/temporary_folder.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kNow = 1'700'000'000;

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.first_pause = limits.longest_pause = 1ms;
  limits.tries = 2;
  return limits;
}

Result<S3Keys> found(std::int64_t now = kNow) { return find_google_keys({quick_limits(), nullptr}, now); }

// The value of "name=" in a form.
std::string field_of(const std::string& form, const std::string& name) {
  const std::size_t at = form.find(name + "=");
  if (at == form.npos) return {};
  const std::size_t begin = at + name.size() + 1;
  return form.substr(begin, form.find('&', begin) - begin);
}

std::string decoded(std::string text) {  // base64url
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char c : text) {
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    if ((held += 6) < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xff);
  }
  return bytes;
}

std::string json_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  return escaped;
}

std::string service_account(const std::string& token_url, std::string_view key = kTestRsaKey) {
  return R"({"type": "service_account", "private_key_id": "k7", "private_key": ")" + json_escaped(key) +
         R"(", "client_email": "reader@project.iam", "token_uri": ")" + token_url + "\"}";
}

bool has_libcrypto() { return rs256(kTestRsaKey, "x").has_value(); }

TEST(GoogleKeys, AreHmacKeysFirstAndThenATokenAsItIs) {
  Variables values{{"GS_ACCESS_KEY_ID", "E"}, {"GS_SECRET_ACCESS_KEY", "S"}, {"CLOUDSDK_AUTH_ACCESS_TOKEN", "ya29.x"}};
  {
    const Environment environment(values);
    EXPECT_EQ(found()->id + found()->secret + found()->bearer, "ES");
  }
  values["GS_SECRET_ACCESS_KEY"] = "";
  const Environment environment(values);
  EXPECT_EQ(found()->bearer, "ya29.x");
}

TEST(GoogleKeys, OfAServiceAccountAreAskedForBySignature) {
  if (!has_libcrypto()) GTEST_SKIP() << "libcrypto is not installed";
  const TemporaryFolder folder;
  HttpServer server([](const ServedRequest&) {
    return ServedAnswer{.body = R"({"access_token": "ya29.\u003dtoken", "expires_in": 3599, "token_type": "Bearer"})"};
  });
  const Environment environment(
      {{"GOOGLE_APPLICATION_CREDENTIALS", folder.write("sa.json", service_account(server.url("/token")))}});
  const auto keys = found();
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_EQ(keys->bearer, "ya29.=token");
  EXPECT_EQ(keys->expires, kNow + 3599);
  const ServedRequest request = server.requests().at(0);
  EXPECT_EQ(request.method + request.target, "POST/token") << "no secret in a URL";
  EXPECT_EQ(field_of(request.body, "grant_type"), "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer");
  const std::string assertion = field_of(request.body, "assertion");
  const std::size_t first = assertion.find('.'), second = assertion.rfind('.');
  ASSERT_NE(first, second);
  EXPECT_EQ(decoded(assertion.substr(0, first)), R"({"alg":"RS256","typ":"JWT","kid":"k7"})");
  EXPECT_EQ(decoded(assertion.substr(first + 1, second - first - 1)),
            R"({"iss":"reader@project.iam","scope":"https://www.googleapis.com/auth/devstorage.read_write","aud":")" +
                server.url("/token") + R"(","iat":1700000000,"exp":1700003600})");
  EXPECT_EQ(decoded(assertion.substr(second + 1)), *rs256(kTestRsaKey, assertion.substr(0, second)));
}

TEST(GoogleKeys, OfAUserAreRefreshed) {
  const TemporaryFolder folder;
  HttpServer server([](const ServedRequest& request) {
    if (field_of(request.body, "refresh_token") != "1%2F%2Fr" || field_of(request.body, "client_secret") != "cs" ||
        field_of(request.body, "client_id") != "ci" || field_of(request.body, "grant_type") != "refresh_token")
      return ServedAnswer{.status = 400};
    return ServedAnswer{.body = R"({"access_token": "user-token", "expires_in": 100})"};
  });
  folder.write("application_default_credentials.json",
               R"({"client_id": "ci", "client_secret": "cs", "refresh_token": "1//r", "type": "authorized_user", )"
               R"("token_uri": ")" +
                   server.url("/") + "\"}");
  const Environment environment({{"CLOUDSDK_CONFIG", folder.path("")}});
  const auto keys = found();
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_EQ(keys->bearer, "user-token");
  EXPECT_EQ(keys->expires, kNow + 100);
}

TEST(GoogleKeys, OfTheMachineComeFromItsMetadata) {
  HttpServer server([](const ServedRequest& request) {
    if (request.header("metadata-flavor") != "Google" ||
        request.target != "/computeMetadata/v1/instance/service-accounts/default/token")
      return ServedAnswer{.status = 403};
    return ServedAnswer{.body = R"({"access_token":"machine","expires_in":250,"token_type":"Bearer"})"};
  });
  Variables values{{"GCE_METADATA_HOST", server.host()}};
  {
    const Environment environment(values);
    EXPECT_EQ(found()->bearer, "machine");
    EXPECT_EQ(found()->expires, kNow + 250);
  }
  values["NO_GCE_CHECK"] = "true";
  const Environment environment(values);
  EXPECT_TRUE(found()->is_empty());
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(GoogleKeys, ThatCannotBeHadAreErrorsWithoutThem) {
  const TemporaryFolder folder;
  HttpServer server([](const ServedRequest& request) {
    if (request.target == "/empty") return ServedAnswer{.body = "{}"};
    return ServedAnswer{.status = 400, .body = request.body};  // with everything that was sent
  });
  const std::string no_key = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
  const std::vector<std::pair<std::string, std::string>> files{
      {R"({"type": "external_account", "token_url": "hunter2"})", "external_account"},
      {R"({"hunter2": 1})", "say no type"},
      {service_account(server.url("/refuses"), no_key), "private key"},
      {R"({"type": "authorized_user", "refresh_token": "hunter2", "token_uri": ")" + server.url("/refuses") + "\"}",
       "400"},
      {R"({"type": "authorized_user", "refresh_token": "hunter2", "token_uri": ")" + server.url("/empty") + "\"}",
       "gives no token"}};
  for (const auto& [content, part] : files) {
    const Environment environment({{"GOOGLE_APPLICATION_CREDENTIALS", folder.write("c.json", content)}});
    const auto keys = found();
    ASSERT_FALSE(keys) << content;
    EXPECT_EQ(keys.error().message().find("hunter2"), std::string::npos) << keys.error().message();
    EXPECT_NE(keys.error().message().find("c.json"), std::string::npos) << keys.error().message();
    if (!has_libcrypto()) continue;
    EXPECT_NE(keys.error().message().find(part), std::string::npos) << keys.error().message();
  }
  const Environment environment({{"GOOGLE_APPLICATION_CREDENTIALS", folder.path("not there")}});
  EXPECT_FALSE(found()) << "what is named and not there is no public bucket";
}

TEST(GoogleKeys, ExpireAndAreFoundAnew) {
  std::atomic<int> given = 0;
  HttpServer server([&](const ServedRequest&) {
    return ServedAnswer{.body = R"({"access_token":"t)" + std::to_string(++given) + R"(","expires_in":3600})"};
  });
  const Environment environment(Variables{{"GCE_METADATA_HOST", server.host()}});
  std::int64_t now = kNow;
  const KeyRing ring([&] { return found(now); }, [&] { return now; });
  for (const auto& [seconds, token] : {std::pair(0, "t1"), std::pair(3200, "t1"), std::pair(101, "t2")}) {
    now += seconds;
    ASSERT_TRUE(ring.prepare());
    EXPECT_EQ(ring.keys().bearer, token) << now;
  }
}

// ---- requests as sent ----

TEST(GoogleTokens, AreSentAndFoundAgainWhereTheyAreRefused) {
  const std::string content = recognisable_bytes(5000);
  HttpServer server([&](const ServedRequest& request) {
    if (request.header("authorization") != "Bearer t2")
      return ServedAnswer{.status = 401, .body = "<Error><Code>AuthenticationRequired</Code></Error>"};
    return serve(request, content, "\"e\"");
  });
  int given = 0;
  const auto site = std::make_shared<S3Site>(
      S3Settings{.scheme = "gs", .endpoint = "http://" + server.host(), .region = "auto", .path_style = true}, [&] {
        S3Keys keys;
        keys.bearer = "t" + std::to_string(++given);
        return Result<S3Keys>(keys);
      });
  const S3Storage storage(site, quick_limits());
  const auto reader = storage.open("gs://bucket/a b", Access::kRead);
  ASSERT_TRUE(reader) << reader.error().message();
  std::vector<std::byte> room(100);
  EXPECT_EQ(*(*reader)->read_at(4500, room), 100u);
  EXPECT_EQ(text_of(room), content.substr(4500, 100));
  EXPECT_EQ(given, 2);
  EXPECT_EQ(server.requests().back().target, "/bucket/a%20b");
  EXPECT_EQ(server.requests().back().header("x-amz-date"), "") << "nothing of a signature";
}

TEST(GoogleTokens, AreNotSentInTheOpen) {
  const S3Site site({.scheme = "gs", .endpoint = "http://storage.example.com", .path_style = true}, [] {
    S3Keys keys;
    keys.bearer = "hunter2";
    return Result<S3Keys>(keys);
  });
  ASSERT_TRUE(site.prepare());
  const auto call = site.call("gs://bucket/x", "");
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().message().find("hunter2"), std::string::npos) << call.error().message();
  EXPECT_NE(call.error().message().find("https://"), std::string::npos) << call.error().message();
}

}  // namespace
}  // namespace feedline::storage
