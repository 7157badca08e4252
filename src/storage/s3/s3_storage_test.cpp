// SPDX-License-Identifier: Apache-2.0
// Requests to S3 as sent, rotation of keys, and paginated listings.
#include "storage/s3/s3_storage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>

#include "storage/fetch.h"
#include "storage/http/http_server_fixture.h"
#include "storage/s3/environment_fixture.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

const std::string kContent = recognisable_bytes(9000);

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.first_pause = 1ms;
  limits.longest_pause = 5ms;
  limits.tries = 3;
  return limits;
}

S3Settings settings_of(const HttpServer& server) {
  return {.endpoint = "http://" + server.host(), .region = "eu-west-1", .path_style = true};
}

Result<S3Keys> some_keys() { return S3Keys{"ID", "hunter2", "token-1", 0}; }

std::shared_ptr<S3Storage> storage_of(const HttpServer& server, KeyRing::Find find = some_keys) {
  return std::make_shared<S3Storage>(std::make_shared<S3Site>(settings_of(server), std::move(find)), quick_limits());
}

TEST(S3Storage, ReadsObjectsWhateverTheirKeysAreCalled) {
  HttpServer server([](const ServedRequest& request) { return serve(request, kContent, "\"e\""); });
  const auto storage = storage_of(server);
  for (const auto& [key, target] :
       std::map<std::string, std::string>{{"a/b.tar", "/bucket/a/b.tar"},
                                          {"a b+c=d%&?.tar", "/bucket/a%20b%2Bc%3Dd%25%26%3F.tar"},
                                          {"\xc3\xa9//x", "/bucket/%C3%A9//x"}}) {
    const auto reader = storage->open("s3://bucket/" + key, Access::kRead);
    ASSERT_TRUE(reader) << reader.error().message();
    std::vector<std::byte> room(100);
    EXPECT_EQ(*(*reader)->read_at(8000, room), 100u);
    EXPECT_EQ(text_of(room), kContent.substr(8000, 100));
    EXPECT_EQ(server.requests().back().target, target);
  }
  const ServedRequest last = server.requests().back();
  EXPECT_NE(last.header("authorization").find("/eu-west-1/s3/aws4_request"), std::string::npos);
  EXPECT_EQ(last.header("x-amz-security-token"), "token-1");
  EXPECT_EQ(last.header("if-match"), "\"e\"");
}

TEST(S3Storage, WhereABucketIsFollowsItsStyle) {
  S3Settings settings{.region = "us-west-2"};
  const auto url = [&](const std::string& object) {
    return S3Site(settings, [] { return Result<S3Keys>(S3Keys{}); }).call(object, "")->url;
  };
  EXPECT_EQ(url("s3://data/k"), "https://data.s3.us-west-2.amazonaws.com/k");
  EXPECT_EQ(url("s3://my.data/k"), "https://s3.us-west-2.amazonaws.com/my.data/k") << "no certificate has that name";
  settings.endpoint = "http://localhost:9000/base";
  EXPECT_EQ(url("s3://data/k"), "http://data.localhost:9000/base/k");
  settings.path_style = true;
  EXPECT_EQ(url("s3://data/k"), "http://localhost:9000/base/data/k");
}

TEST(S3Storage, RequestsAreUnsignedWithoutKeysAndPaidWhereAskedFor) {
  HttpServer server([](const ServedRequest& request) { return serve(request, kContent, "\"e\""); });
  S3Settings settings = settings_of(server);
  settings.requester_pays = true;
  const auto site = std::make_shared<S3Site>(settings, [] { return Result<S3Keys>(S3Keys{}); });
  EXPECT_TRUE(S3Storage(site, quick_limits()).stat("s3://bucket/x"));
  EXPECT_EQ(server.requests()[0].header("authorization"), "");
  EXPECT_EQ(server.requests()[0].header("x-amz-request-payer"), "requester");
}

ServedAnswer expired() {
  return {.status = 400, .body = "<Error><Code>ExpiredToken</Code><Message>token-1</Message></Error>"};
}

TEST(S3Storage, KeysThatExpiredAreRenewedOnce) {
  std::atomic<int> found = 0;
  const KeyRing::Find find = [&] {
    return Result<S3Keys>(S3Keys{"ID", "hunter2", "token-" + std::to_string(++found), 0});
  };
  HttpServer server([&](const ServedRequest& request) {
    return request.header("x-amz-security-token") == "token-1" ? expired() : serve(request, kContent, "\"e\"");
  });
  const auto storage = storage_of(server, find);
  EXPECT_TRUE(storage->stat("s3://bucket/x"));
  EXPECT_EQ(found, 2);
  // and with a queue
  found = 0;
  const auto other = storage_of(server, find);
  const auto queue = make_fetch_queue(other, QueueKind::kBest);
  Fetch fetch;
  fetch.piece.path = "s3://bucket/x";
  queue->start(fetch);
  ASSERT_EQ(queue->finished(FetchQueue::Clock::now() + 200s), &fetch);
  ASSERT_TRUE(fetch.bytes) << fetch.bytes.error().message();
  EXPECT_EQ(text_of(*fetch.bytes), kContent);
  HttpServer never([](const ServedRequest&) { return expired(); });
  const auto refused = storage_of(never)->stat("s3://bucket/x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(never.requests().size(), 2u);
  EXPECT_NE(refused.error().what.find("ExpiredToken"), std::string::npos) << refused.error().message();
  for (const char* secret : {"hunter2", "token-1"})
    EXPECT_EQ(refused.error().message().find(secret), std::string::npos) << refused.error().message();
}

TEST(S3Storage, RefusalsSayWhatToDo) {
  HttpServer server([](const ServedRequest&) {
    return ServedAnswer{.status = 403,
                        .headers = {"x-amz-bucket-region: us-west-2", "x-amz-request-id: R9"},
                        .body = "<Error><Code>AccessDenied</Code></Error>"};
  });
  const auto refused = storage_of(server, [] { return Result<S3Keys>(S3Keys{}); })->stat("s3://bucket/x");
  ASSERT_FALSE(refused);
  for (const char* part : {"403", "AccessDenied", "set AWS_REGION", "us-west-2", "AWS_PROFILE", "R9", "s3://bucket/x"})
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
  EXPECT_EQ(refused.error().system_errno, EACCES);
}

TEST(S3Storage, BusyServersAreTriedAgainByTheirWords) {
  HttpServer server([](const ServedRequest& request) {
    if (request.number == 0) return ServedAnswer{.status = 400, .body = "<Error><Code>RequestTimeout</Code></Error>"};
    return serve(request, kContent, "\"e\"");
  });
  EXPECT_TRUE(storage_of(server)->stat("s3://bucket/x"));
}

// For a process that exits while a server repeatedly rejects its requests. Statics are destroyed in reverse order of
// construction, so the client, which is constructed before the first rejection, still runs after objects that a
// rejection constructs have been destroyed.
std::atomic<int> refusals_here = 0;

void wait_for_refusals() {
  const auto until = std::chrono::steady_clock::now() + 60s;
  for (const int most = refusals_here + 20; refusals_here < most && std::chrono::steady_clock::now() < until;)
    std::this_thread::sleep_for(1ms);
}

[[noreturn]] void end_while_refused() {
  static HttpServer* const server = new HttpServer([](const ServedRequest& request) {
    if (request.number == 0) return serve(request, kContent, "\"e\"");
    ++refusals_here;
    return ServedAnswer{.status = 503, .body = "<Error><Code>SlowDown</Code></Error>"};
  });
  HttpLimits limits = quick_limits();
  limits.tries = 1'000'000;
  const auto site = std::make_shared<S3Site>(settings_of(*server), some_keys);
  static const auto* const storage = new S3Storage(site, limits);
  if (!storage->stat("s3://bucket/x")) std::_Exit(3);
  std::atexit(wait_for_refusals);
  std::thread([] { static_cast<void>(storage->stat("s3://bucket/y")); }).detach();
  wait_for_refusals();
  std::exit(0);
}

TEST(S3Storage, AProcessEndsWhileItIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_while_refused(), testing::ExitedWithCode(0), "");
}

TEST(S3Storage, ListsAllPages) {
  HttpServer server([](const ServedRequest& request) {
    const auto page = [](const std::string& inside) {
      return ServedAnswer{.body = "<ListBucketResult>" + inside + "</ListBucketResult>"};
    };
    if (!request.target.contains("prefix=train%2F")) return page("");
    if (!request.target.contains("continuation-token=more%3D"))
      return page(
          "<IsTruncated>true</IsTruncated><NextContinuationToken>more=</NextContinuationToken><Contents><Key>train/"
          "</Key><Size>0</Size></Contents><Contents><Key>train/b.tar</Key><Size>1</Size></Contents>");
    return page(
        "<Contents><Key>train/a.tar</Key><Size>1</Size></Contents><CommonPrefixes><Prefix>train/cat/</Prefix>"
        "</CommonPrefixes>");
  });
  const auto storage = storage_of(server);
  const auto entries = storage->list("s3://bucket/train");
  ASSERT_TRUE(entries) << entries.error().message();
  std::string found;
  for (const Entry& entry : *entries) found += entry.name + (entry.is_directory ? "/ " : " ");
  EXPECT_EQ(found, "a.tar b.tar cat/ ");
  EXPECT_EQ(server.requests()[0].target,
            "/bucket/?delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=train%2F");
  EXPECT_TRUE(*storage->is_directory("s3://bucket/train"));
  EXPECT_FALSE(*storage->is_directory("s3://bucket/none"));
  EXPECT_EQ(storage->list("s3://bucket/none").error().system_errno, ENOENT);
}

// Many requests with the same keys are in flight; the first one that fails obtains new keys.
TEST(S3Storage, KeysThatAreRefusedToManyRequestsAreRenewedOnce) {
  constexpr int kRequests = 20;
  std::atomic<int> found = 0, refusals = 0;
  const KeyRing::Find find = [&] {
    return Result<S3Keys>(S3Keys{"ID", "hunter2", "token-" + std::to_string(++found), 0});
  };
  std::mutex mutex;
  std::condition_variable all_came;
  HttpServer server([&](const ServedRequest& request) {
    if (request.header("x-amz-security-token") != "token-1") return serve(request, kContent, "\"e\"");
    std::unique_lock lock(mutex);
    if (++refusals == kRequests) all_came.notify_all();
    all_came.wait_for(lock, 60s, [&] { return refusals >= kRequests; });
    return expired();
  });
  for (const QueueKind kind : {QueueKind::kBest, QueueKind::kThreads}) {
    found = refusals = 0;
    const auto storage = storage_of(server, find);
    const auto queue = make_fetch_queue(storage, kind);
    std::list<Fetch> fetches(kRequests);
    for (Fetch& fetch : fetches) {
      fetch.piece.path = "s3://bucket/x";
      queue->start(fetch);
    }
    for (int i = 0; i < kRequests; ++i) {
      Fetch* const fetch = queue->finished(FetchQueue::Clock::now() + 200s);
      ASSERT_NE(fetch, nullptr);
      EXPECT_TRUE(fetch->bytes) << fetch->bytes.error().message();
    }
    EXPECT_EQ(refusals, kRequests) << "all with the first keys";
    EXPECT_EQ(found, 2);
  }
}

// ---- tokens of Google ----

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

// ---- where a bucket is ----

TEST(S3Regions, AreFollowedOnceForABucket) {
  const auto is_signed_for = [](const ServedRequest& request, const std::string& region) {
    return request.header("authorization").contains("/" + region + "/s3/aws4_request");
  };
  for (const int status : {301, 307, 400}) {
    HttpServer server([&](const ServedRequest& request) {
      if (is_signed_for(request, "eu-central-1")) return serve(request, kContent, "\"e\"");
      if (status == 400)
        return ServedAnswer{.status = 400,
                            .body =
                                "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-central-1"
                                "</Region></Error>"};
      return ServedAnswer{.status = status, .headers = {"x-amz-bucket-region: eu-central-1"}};
    });
    const auto storage = storage_of(server);
    const auto reader = storage->open("s3://bucket/x", Access::kRead);
    ASSERT_TRUE(reader) << status << reader.error().message();
    EXPECT_EQ(server.requests().size(), 2u);
    std::vector<std::byte> room(10);
    EXPECT_TRUE((*reader)->read_at(8000, room));
    EXPECT_EQ(server.requests().size(), 3u) << "and is known from then on";
  }
}

TEST(S3Regions, ThatAreNoneAreNotAsked) {
  for (const std::string region : {"evil.example.com/", "", "EU", "eu-west-1"}) {  // the last one is asked already
    HttpServer server([&](const ServedRequest&) {
      return ServedAnswer{.status = 301, .headers = {"x-amz-bucket-region: " + region}};
    });
    EXPECT_FALSE(storage_of(server)->stat("s3://bucket/x"));
    EXPECT_EQ(server.requests().size(), 1u) << region;
  }
  HttpServer circle([&](const ServedRequest& request) {
    return ServedAnswer{.status = 301, .headers = {"x-amz-bucket-region: r-" + std::to_string(request.number)}};
  });
  EXPECT_FALSE(storage_of(circle)->stat("s3://bucket/x"));
  EXPECT_EQ(circle.requests().size(), 3u) << "no circle";
}

TEST(S3Settings, AreThoseOfTheEnvironment) {
  {
    const Environment environment({{"AWS_REQUEST_PAYER", "requester"}, {"AWS_REGION", "eu-south-1"}});
    EXPECT_TRUE(s3_settings().requester_pays);
    EXPECT_FALSE(s3_settings().path_style) << "of Amazon's own: bucket.s3...";
    EXPECT_EQ(s3_settings().region, "eu-south-1");
  }
  Variables values{{"AWS_ENDPOINT_URL", "http://localhost:9000/"}};
  {
    const Environment environment(values);
    EXPECT_TRUE(s3_settings().path_style);
    EXPECT_FALSE(s3_settings().requester_pays);
    EXPECT_EQ(s3_settings().endpoint, "http://localhost:9000");
  }
  values["AWS_S3_ADDRESSING_STYLE"] = "virtual";
  const Environment environment(values);
  EXPECT_FALSE(s3_settings().path_style);
}

}  // namespace
}  // namespace feedline::storage
