// SPDX-License-Identifier: Apache-2.0
// Redirects, signed URLs and their renewal, limits, and what is sent to whom.
#include "storage/hub/hub_storage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "storage/fetch.h"
#include "storage/http/http_server_fixture.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

const std::string kCommit(40, 'a');
const std::string kRoot = "hf://datasets/org/name@" + kCommit + "/";
const std::string kContent = recognisable_bytes(9000);

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.first_pause = 1ms;
  limits.longest_pause = 5ms;
  limits.tries = 3;
  return limits;
}

// A Hub with a dataset of large files, and the host of their bytes.
class HubStorageTest : public testing::Test {
 protected:
  ServedAnswer answer_hub(const ServedRequest& request) {
    if (hub_answers_) return hub_answers_(request);
    return usual_answer(request);
  }
  ServedAnswer usual_answer(const ServedRequest& request) {
    if (request.target.find("/tree/") != request.target.npos) {
      std::string json;
      for (const char* path : {"a.bin", "b.bin"})
        json += std::string(json.empty() ? "[" : ",") + R"({"type":"file","path":")" + path +
                R"(","size":9000,"oid":"1","lfs":{"oid":"abc","size":9000}})";
      return {.body = json + "]"};
    }
    if (request.target.find("/resolve/") == request.target.npos) return {.status = 404};
    const auto expires = std::to_string(std::time(nullptr) + lifetime_);
    return {.status = 302, .headers = {"Location: " + cdn_.url("/x?Expires=" + expires)}};
  }
  ServedAnswer answer_cdn(const ServedRequest& request) {
    if (refusals_ > 0) return --refusals_, ServedAnswer{.status = 403, .body = "<Error>Request has expired</Error>"};
    if (!request.header("if-match").empty() || !request.header("authorization").empty()) return {.status = 400};
    return serve(request, kContent, "\"of-the-cdn\"");
  }
  HubSettings settings(const std::string& token = "hf_secret") const {
    return {.endpoint = "http://" + hub_.host(), .token = token};
  }
  std::shared_ptr<HubStorage> storage() const { return std::make_shared<HubStorage>(settings(), quick_limits()); }
  static std::string read(const HubStorage& storage, const std::string& path, std::uint64_t offset = 100) {
    const auto reader = storage.open(kRoot + path, Access::kRead);
    if (!reader) return reader.error().message();
    std::vector<std::byte> room(50);
    const auto got = (*reader)->read_at(offset, room);
    return got ? text_of(std::span(room).first(*got)) : got.error().message();
  }
  std::size_t resolved() const {
    std::size_t count = 0;
    for (const ServedRequest& request : hub_.requests())
      count += request.target.find("/resolve/") != request.target.npos ? 1 : 0;
    return count;
  }

  std::function<ServedAnswer(const ServedRequest&)> hub_answers_;
  std::atomic<int> refusals_{0};
  std::int64_t lifetime_ = 3600;
  HttpServer cdn_{[this](const ServedRequest& request) { return answer_cdn(request); }};
  HttpServer hub_{[this](const ServedRequest& request) { return answer_hub(request); }};
};

TEST_F(HubStorageTest, AFileIsResolvedOnceForAllItsReads) {
  const auto storage = this->storage();
  for (std::uint64_t offset = 0; offset < 9000; offset += 900)
    EXPECT_EQ(read(*storage, "a.bin", offset), kContent.substr(offset, 50));
  EXPECT_EQ(resolved(), 1u);
  EXPECT_EQ(hub_.requests().size(), 2u) << "and the folder is listed once";
  for (const ServedRequest& request : hub_.requests()) {
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret");
    EXPECT_EQ(request.header("accept-encoding"), "identity");
  }
  for (const ServedRequest& request : cdn_.requests()) {
    EXPECT_EQ(request.header("authorization"), "");
    EXPECT_EQ(request.header("accept-encoding"), "identity");
  }
}

TEST_F(HubStorageTest, ConcurrentReadsWaitForOneRedirect) {
  hub_answers_ = [this](const ServedRequest& request) {
    if (request.target.find("/resolve/") != request.target.npos) std::this_thread::sleep_for(50ms);
    return usual_answer(request);
  };
  const auto storage = this->storage();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const auto offset = static_cast<std::uint64_t>(i) * 1000;
      EXPECT_EQ(read(*storage, "a.bin", offset), kContent.substr(offset, 50));
    });
  threads.clear();
  EXPECT_EQ(resolved(), 1u);
}

TEST_F(HubStorageTest, ReadsDoNotWaitForARedirectWhoseReadWasCancelled) {
  // shared with the server's thread, which may look at it after this test has returned
  struct Delay {
    std::atomic<int> delayed{1};
    std::atomic<bool> is_read{false};
  };
  const auto delay = std::make_shared<Delay>();
  hub_answers_ = [this, delay](const ServedRequest& request) {
    if (request.target.find("/resolve/") != request.target.npos && delay->delayed-- > 0) delay->is_read.wait(false);
    return usual_answer(request);
  };
  const auto storage = this->storage();
  const auto queue = make_fetch_queue(storage, QueueKind::kBest);
  Fetch fetch;
  fetch.piece.path = kRoot + "a.bin";
  fetch.version = *storage->stat(fetch.piece.path);
  queue->start(fetch);
  while (resolved() == 0) std::this_thread::sleep_for(1ms);
  queue->cancel(fetch);
  EXPECT_EQ(read(*storage, "a.bin"), kContent.substr(100, 50)) << "while the first redirect is still awaited";
  delay->is_read = true;
  delay->is_read.notify_all();
}

TEST_F(HubStorageTest, AnExpiredUrlIsRenewedOnce) {
  const auto storage = this->storage();
  read(*storage, "a.bin");
  refusals_ = 1;
  EXPECT_EQ(read(*storage, "a.bin", 7), kContent.substr(7, 50));
  EXPECT_EQ(resolved(), 2u);
  refusals_ = 1;
  EXPECT_EQ(read(*storage, "a.bin", 8), kContent.substr(8, 50)) << "and once more for another read";
  EXPECT_EQ(resolved(), 3u);
}

TEST_F(HubStorageTest, ARefusalThatRenewalDoesNotCureIsAnErrorWithItsBody) {
  refusals_ = 1'000'000;
  const std::string error = read(*storage(), "a.bin");
  EXPECT_NE(error.find("403 Forbidden, Request has expired"), std::string::npos) << error;
  EXPECT_NE(error.find("a.bin"), std::string::npos) << error;
  EXPECT_EQ(error.find("Expires="), std::string::npos) << "signatures are secret: " << error;
  EXPECT_EQ(cdn_.requests().size(), 2u);
  EXPECT_EQ(resolved(), 2u);
}

TEST_F(HubStorageTest, AUrlIsRenewedBeforeItExpires) {
  lifetime_ = 2;
  const auto storage = this->storage();
  read(*storage, "a.bin");
  std::this_thread::sleep_for(2100ms);
  EXPECT_EQ(read(*storage, "a.bin"), kContent.substr(100, 50));
  EXPECT_EQ(resolved(), 2u);
  for (const ServedRequest& request : cdn_.requests()) EXPECT_NE(request.target.find("Expires="), std::string::npos);
}

TEST_F(HubStorageTest, RelativeRedirectsStayAtTheEndpoint) {
  hub_answers_ = [this](const ServedRequest& request) {
    if (request.target.find("/resolve/") != request.target.npos)
      return ServedAnswer{.status = 307, .headers = {"Location: /api/resolve-cache/x"}};
    return request.target == "/api/resolve-cache/x" ? serve(request, kContent, "\"e\"") : usual_answer(request);
  };
  EXPECT_EQ(read(*storage(), "a.bin"), kContent.substr(100, 50));
  EXPECT_EQ(hub_.requests().back().header("authorization"), "Bearer hf_secret");
}

TEST_F(HubStorageTest, RedirectsWithoutEndAreAnError) {
  hub_answers_ = [this](const ServedRequest& request) {
    return request.target.find("/tree/") != request.target.npos
               ? usual_answer(request)
               : ServedAnswer{.status = 302, .headers = {"Location: /again"}};
  };
  EXPECT_NE(read(*storage(), "a.bin").find("302"), std::string::npos);
  EXPECT_LT(hub_.requests().size(), 10u);
}

TEST_F(HubStorageTest, AFullWindowIsWaitedFor) {
  std::atomic<int> throttled{1};
  hub_answers_ = [&](const ServedRequest& request) {
    if (request.target.find("/resolve/") != request.target.npos && throttled-- > 0)
      return ServedAnswer{.status = 429, .headers = {"RateLimit: \"resolvers\";r=0;t=0"}};
    return usual_answer(request);
  };
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(read(*storage(), "a.bin"), kContent.substr(100, 50));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 1s) << "a second more than the stated 0";
  EXPECT_EQ(resolved(), 2u);
}

TEST_F(HubStorageTest, TheNextPageOfAListingIsRequestedFromTheEndpoint) {
  hub_answers_ = [](const ServedRequest& request) {
    const bool is_first = request.target.find("cursor") == request.target.npos;
    ServedAnswer answer{.body = is_first ? R"([{"type":"file","path":"a","size":1,"oid":"1"}])"
                                         : R"([{"type":"file","path":"b","size":1,"oid":"2"}])"};
    if (is_first)
      answer.headers = {"Link: <https://other.invalid/api/datasets/org/name/tree/x?cursor=1>; rel=\"next\""};
    return answer;
  };
  const auto tree = storage()->list_below(kRoot, Depth::kAll);
  ASSERT_TRUE(tree) << tree.error().message();
  EXPECT_EQ(tree->objects.size(), 2u);
  EXPECT_EQ(hub_.requests().back().target, "/api/datasets/org/name/tree/x?cursor=1");
}

TEST_F(HubStorageTest, AListingThatRepeatsAPageIsAnError) {
  hub_answers_ = [](const ServedRequest& request) {
    return ServedAnswer{.headers = {"Link: <" + request.target + ">; rel=\"next\""}, .body = "[]"};
  };
  const auto tree = storage()->list_below(kRoot, Depth::kAll);
  ASSERT_FALSE(tree);
  EXPECT_NE(tree.error().message().find("repeats a page"), std::string::npos) << tree.error().message();
}

TEST_F(HubStorageTest, AFileOfAnotherSizeThanListedIsAnError) {
  hub_answers_ = [this](const ServedRequest& request) {
    return request.target.find("/tree/") != request.target.npos
               ? ServedAnswer{.body = R"([{"type":"file","path":"a.bin","size":8000,"oid":"1"}])"}
               : usual_answer(request);
  };
  EXPECT_NE(read(*storage(), "a.bin").find("has changed"), std::string::npos);
}

TEST_F(HubStorageTest, WholeFilesHaveTheListedSum) {
  hub_answers_ = [this](const ServedRequest& request) {
    return request.target.find("/tree/") != request.target.npos
               ? ServedAnswer{.body = R"([{"type":"file","path":"a.bin","size":9000,"lfs":{"oid":")" +
                                      std::string(64, 'c') + R"("}}])"}
               : usual_answer(request);
  };
  const auto storage = this->storage()->reading({.compares_sums = true});
  const auto sum = storage->known_sum(kRoot + "a.bin", {});
  ASSERT_TRUE(sum && *sum);
  EXPECT_EQ((*sum)->value, std::string(32, '\xcc'));
}

TEST_F(HubStorageTest, QueuedReadsResolveEachFileOnce) {
  const auto storage = this->storage();
  const auto queue = make_fetch_queue(storage, QueueKind::kBest);
  ASSERT_EQ(queue->name(), "http");
  std::vector<Fetch> fetches(20);
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    fetches[i].piece.path = kRoot + (i % 2 == 0 ? "a.bin" : "b.bin");
    fetches[i].version = *storage->stat(fetches[i].piece.path);
    queue->start(fetches[i]);
  }
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    const Fetch* const done = queue->finished(std::chrono::steady_clock::now() + 10s);
    ASSERT_NE(done, nullptr);
    ASSERT_TRUE(done->bytes) << done->bytes.error().message();
    EXPECT_EQ(text_of(*done->bytes), kContent);
  }
  EXPECT_EQ(resolved(), 2u);
}

TEST_F(HubStorageTest, TheTokenIsNotSentInTheClear) {
  const HubStorage storage({.endpoint = "http://host.invalid", .token = "hf_secret"}, quick_limits());
  const std::string error = read(storage, "a.bin");
  EXPECT_NE(error.find("is not encrypted"), std::string::npos) << error;
  EXPECT_EQ(error.find("hf_secret"), std::string::npos) << error;
}

}  // namespace
}  // namespace feedline::storage
