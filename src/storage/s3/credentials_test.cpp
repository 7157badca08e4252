// SPDX-License-Identifier: Apache-2.0
// The order of key sources, and when a KeyRing renews keys.
#include "storage/s3/credentials.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "feedline/credentials.h"
#include "storage/s3/environment_fixture.h"
#include "storage/s3/s3_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::storage {
namespace {

// Acts as a library that reads the other sources, for one test.
class Library {
 public:
  explicit Library(FindCredentials find) { find_credentials_by(std::move(find)); }
  ~Library() { find_credentials_by({}); }
};

Result<Credentials> by_library(const std::string& scheme) {
  return Credentials{.id = "library's " + scheme, .secret = "s"};
}

TEST(S3Keys, ComeFromTheEnvironmentFirst) {
  const Environment environment(
      {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "S"}, {"AWS_SESSION_TOKEN", "T"}});
  const Library library(by_library);
  const auto keys = find_keys("s3");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->id + keys->secret + keys->token, "EST");
}

TEST(S3Keys, ComeFromTheNamedProfile) {
  const TemporaryFolder folder;
  const std::string credentials = folder.write(
      "credentials",
      "# mine\n[default]\naws_access_key_id=D\naws_secret_access_key = DS\n[work]\naws_access_key_id = W\n");
  const std::string config = folder.write(
      "config", "[profile work]\nregion = eu-north-1\naws_secret_access_key=WS=\ns3 =\n  aws_session_token = no\n");
  Variables values{{"AWS_SHARED_CREDENTIALS_FILE", credentials}, {"AWS_CONFIG_FILE", config}};
  const Library library(by_library);
  {
    const Environment environment(values);
    EXPECT_EQ(find_keys("s3")->id, "D");
  }
  values["AWS_PROFILE"] = "work";
  const Environment environment(values);
  const auto keys = find_keys("s3");
  EXPECT_EQ(keys->id + "," + keys->secret + "," + keys->token, "W,WS=,");
  EXPECT_EQ(s3_settings().region, "eu-north-1");
}

TEST(S3Keys, OfARoleComeFromTheLibrary) {
  const TemporaryFolder folder;
  Variables values{{"AWS_SHARED_CREDENTIALS_FILE",
                    folder.write("credentials", "[default]\naws_access_key_id=D\naws_secret_access_key=DS\n")}};
  const Library library(by_library);
  values["AWS_WEB_IDENTITY_TOKEN_FILE"] = "token";
  {
    const Environment environment(values);
    EXPECT_EQ(find_keys("s3")->id, "library's s3");
  }
  values.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  values["AWS_CONFIG_FILE"] = folder.write("config", "[default]\nrole_arn = arn:role\nsource_profile = default\n");
  const Environment environment(values);
  EXPECT_EQ(find_keys("s3")->id, "library's s3");
}

TEST(GoogleKeys, AreHmacKeysThenATokenThenTheLibrarys) {
  Variables values{{"GS_ACCESS_KEY_ID", "E"}, {"GS_SECRET_ACCESS_KEY", "S"}, {"CLOUDSDK_AUTH_ACCESS_TOKEN", "ya29.x"}};
  const Library library([](const std::string& scheme) {
    return Result<Credentials>(Credentials{.bearer = "of " + scheme, .expires = 7});
  });
  {
    const Environment environment(values);
    EXPECT_EQ(find_keys("gs")->id + find_keys("gs")->secret + find_keys("gs")->bearer, "ES");
  }
  values["GS_SECRET_ACCESS_KEY"] = "";
  {
    const Environment environment(values);
    EXPECT_EQ(find_keys("gs")->bearer, "ya29.x");
  }
  const Environment environment({});
  EXPECT_EQ(find_keys("gs")->bearer, "of gs");
  EXPECT_EQ(find_keys("gs")->expires, 7);
}

TEST(Credentials, AreEmptyWithoutASource) {
  const Environment environment({});
  EXPECT_TRUE(find_keys("s3")->is_empty());
  EXPECT_TRUE(find_keys("gs")->is_empty());
  const Library library([](const std::string&) -> Result<Credentials> { return storage_error("no access", EACCES); });
  EXPECT_EQ(find_keys("s3").error().what.find("no access"), 0u);
}

// ---- renewal ----

constexpr std::int64_t kHour = 3600;

// Returns the keys K1, K2, ..., each valid for an hour.
struct NumberedKeys {
  std::atomic<std::int64_t> now = 1000;
  std::atomic<int> found = 0;
  std::atomic<bool> fails = false;

  Result<S3Keys> operator()() {
    if (fails) return storage_error("no keys today", EIO);
    return S3Keys{"K" + std::to_string(++found), "s", "", now + kHour};
  }
  KeyRing ring() {
    return {[this] { return (*this)(); }, [this] { return now.load(); }};
  }
};

TEST(KeyRing, RenewsKeysFiveMinutesBeforeTheyExpire) {
  NumberedKeys keys;
  const KeyRing ring = keys.ring();
  for (const auto& [seconds, id] :
       {std::pair(0, "K1"), std::pair(3200, "K1"), std::pair(101, "K2"), std::pair(3000, "K2")}) {
    keys.now += seconds;
    ASSERT_TRUE(ring.prepare());
    EXPECT_EQ(ring.keys().id, id) << keys.now;
  }
}

TEST(KeyRing, UsesValidKeysWhileTheSourceFails) {
  NumberedKeys keys;
  const KeyRing ring = keys.ring();
  ASSERT_TRUE(ring.prepare());
  keys.fails = true;
  keys.now += kHour - 100;
  EXPECT_TRUE(ring.prepare()) << "still valid";
  keys.now += 101;
  EXPECT_FALSE(ring.prepare());
}

TEST(KeyRing, RenewsRejectedKeysOnce) {
  NumberedKeys keys;
  const KeyRing ring = keys.ring();
  ASSERT_TRUE(ring.prepare());
  const std::uint64_t refused = ring.keys().generation;
  for (int request = 0; request < 9; ++request) EXPECT_TRUE(ring.renew(refused));
  EXPECT_EQ(ring.keys().id, "K2");
  EXPECT_TRUE(ring.renew(ring.keys().generation));
  EXPECT_EQ(ring.keys().id, "K3");
}

TEST(KeyRing, OtherThreadsUseTheOldKeysDuringARenewal) {
  std::atomic<std::int64_t> now = 1000;
  std::atomic<int> calls = 0;
  std::latch is_renewing(1), may_end(1);
  const KeyRing ring(
      [&] {
        if (++calls == 2) {
          is_renewing.count_down();
          may_end.wait();
        }
        return Result<S3Keys>(S3Keys{"K" + std::to_string(calls), "s", "", now + kHour});
      },
      [&] { return now.load(); });
  ASSERT_TRUE(ring.prepare());
  now += kHour - 200;
  std::thread renewing([&] { EXPECT_TRUE(ring.prepare()); });
  is_renewing.wait();
  EXPECT_TRUE(ring.prepare()) << "does not wait";
  EXPECT_EQ(ring.keys().id, "K1");
  may_end.count_down();
  renewing.join();
  EXPECT_EQ(ring.keys().id, "K2");
  EXPECT_EQ(calls, 2);
}

// A source may not have newer keys yet; it is not called before each read.
TEST(KeyRing, DoesNotCallTheSourceForEachReadBeforeExpiry) {
  std::int64_t now = 1000;
  int looks = 0;
  const KeyRing ring([&] { return ++looks, Result<S3Keys>(S3Keys{"ID", "s", "", 1200}); }, [&] { return now; });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ring.prepare());
  EXPECT_EQ(looks, 1);
  now += 20;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ring.prepare());
  EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace feedline::storage
