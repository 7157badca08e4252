// SPDX-License-Identifier: Apache-2.0
// Many reads through few requests: each read's result under server faults.
#include "storage/http/http_transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <random>

#include "storage/fetch.h"
#include "storage/http/http_server_fixture.h"
#include "storage/orphaned_buffers.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

const std::string kETag = "\"first\"";
const std::string kContent = recognisable_bytes(400'000);

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.first_pause = 1ms;
  limits.longest_pause = 5ms;
  limits.tries = 4;
  return limits;
}

ServedAnswer right(const ServedRequest& request) { return serve(request, kContent, kETag); }

struct Range {
  std::uint64_t offset = 0, bytes = 0;
};

// A server whose responses after opening are set by the test, with a separate client and a queue.
class HttpTransportTest : public testing::Test {
 protected:
  using Answer = std::function<ServedAnswer(const ServedRequest&, std::uint64_t)>;

  void serve_by(Answer answer, HttpLimits limits = quick_limits(), const std::string& content = kContent) {
    server_ = std::make_unique<HttpServer>([answer, content](const ServedRequest& request) {
      return request.number == 0 ? serve(request, content, kETag) : answer(request, request.number - 1);
    });
    client_ = *Client::make(limits);
    storage_ = std::make_shared<HttpStorage>(limits, client_.get());
    auto opened = storage_->open(server_->url("/x.tar"), Access::kRead);
    ASSERT_TRUE(opened) << opened.error().message();
    reader_ = std::move(*opened);
    queue_ = make_fetch_queue(storage_, QueueKind::kBest);
  }
  void start(const std::vector<Range>& ranges) {
    fetches_ = std::vector<Fetch>(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      fetches_[i].piece = {reader_, {}, ranges[i].offset, ranges[i].bytes};
      fetches_[i].most_bytes = std::uint64_t{1} << 30;
      queue_->start(fetches_[i]);
    }
  }
  Fetch* next() {
    Fetch* const fetch = queue_->finished(FetchQueue::Clock::now() + 100s);
    EXPECT_NE(fetch, nullptr);
    return fetch;
  }
  void expect_right(const Fetch& fetch, const std::string& content = kContent) {
    ASSERT_TRUE(fetch.bytes) << fetch.bytes.error().message();
    EXPECT_TRUE(text_of(*fetch.bytes) == content.substr(fetch.piece.offset, fetch.piece.bytes)) << fetch.piece.offset;
  }
  void expect_all_right(const std::string& content = kContent) {
    for (std::size_t i = 0; i < fetches_.size(); ++i)
      if (const Fetch* const fetch = next()) expect_right(*fetch, content);
  }
  std::vector<ServedRequest> requests() const {
    auto all = server_->requests();
    all.erase(all.begin());
    return all;
  }
  static Answer rightly() {
    return [](const ServedRequest& request, std::uint64_t) { return right(request); };
  }

  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Client> client_;
  std::shared_ptr<const HttpStorage> storage_;
  std::shared_ptr<const Reader> reader_;
  std::vector<Fetch> fetches_;
  std::unique_ptr<FetchQueue> queue_;
};

TEST_F(HttpTransportTest, WhatIsHandedOverTogetherIsOneRequest) {
  serve_by(rightly());
  EXPECT_TRUE(storage_->joins_reads());
  start({{30'000, 5000}, {10'000, 7000}, {20'000, 9000}, {10'000, 7000}, {12'000, 100}, {35'512, 1}});
  expect_all_right();
  ASSERT_EQ(requests().size(), 1u);
  EXPECT_EQ(*requests()[0].range(), std::pair(std::uint64_t{10'000}, std::uint64_t{35'512}));
  EXPECT_NE(storage_->summary().find("6 ranges prefetched with 1 requests"), std::string::npos) << storage_->summary();
}

TEST_F(HttpTransportTest, WhatIsFarApartIsNotAndWhatIsBehindTheEndIsEmpty) {
  serve_by(rightly());
  start({{300'000, 5000}, {10'000, 5000}, {500'000, 10}, {399'990, 10}, {5, 0}});
  for (std::size_t i = 0; i < fetches_.size(); ++i) {
    const Fetch* const fetch = next();
    ASSERT_TRUE(fetch->bytes);
    EXPECT_EQ(text_of(*fetch->bytes),
              fetch->piece.offset < kContent.size() ? kContent.substr(fetch->piece.offset, fetch->piece.bytes) : "");
  }
  EXPECT_EQ(requests().size(), 3u);
}

TEST_F(HttpTransportTest, ALongReadIsRequestsSideBySide) {
  const std::string content = recognisable_bytes(20'000'000);
  serve_by([&](const ServedRequest& request, std::uint64_t) { return serve(request, content, kETag); }, quick_limits(),
           content);
  start({{1000, 19'000'000}, {1, 10}});
  expect_all_right(content);
  const auto seen = requests();
  ASSERT_EQ(seen.size(), 4u);
  for (const ServedRequest& request : seen)
    EXPECT_LE(request.range()->second - request.range()->first + 1, std::uint64_t{8} << 20);
}

TEST_F(HttpTransportTest, ABrokenAnswerIsGoneOnWithAndNoPartIsWrittenTwice) {
  for (const std::size_t cut : {0ul, 1ul, 3000ul, 6999ul, 7000ul, 9999ul, 10'000ul, 18'999ul}) {
    serve_by([&](const ServedRequest& request, std::uint64_t tries) {
      ServedAnswer answer = right(request);
      if (tries == 0) answer.breaks_after = cut;
      return answer;
    });
    start({{10'000, 7000}, {20'000, 9000}});
    expect_all_right();
    const auto seen = requests();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[1].range()->first, 10'000 + cut) << "and nothing before it";
    EXPECT_EQ(seen[1].header("if-match"), kETag);
  }
}

TEST_F(HttpTransportTest, AReadIsThereBeforeThoseBehindItInItsRequest) {
  HttpLimits limits = quick_limits();
  limits.stall = 100s;
  serve_by(
      [](const ServedRequest& request, std::uint64_t) {
        ServedAnswer answer = right(request);
        answer.stalls_after = 10'000;  // in the second read
        return answer;
      },
      limits);
  start({{10'000, 7000}, {18'000, 9000}});
  const Fetch* const first = next();
  EXPECT_EQ(first, fetches_.data());
  expect_right(*first);
}

TEST_F(HttpTransportTest, AnErrorOfARequestIsEachReadsOwn) {
  serve_by([](const ServedRequest&, std::uint64_t) { return ServedAnswer{.status = 403, .body = "no"}; });
  start({{10'000, 7000}, {20'000, 9000}});
  for (std::size_t i = 0; i < 2; ++i) {
    const Fetch* const fetch = next();
    ASSERT_FALSE(fetch->bytes);
    const Error& error = fetch->bytes.error();
    EXPECT_EQ(error.code, ErrorCode::kStorage);
    EXPECT_EQ(error.system_errno, EACCES);
    EXPECT_EQ(error.where.shard, server_->url("/x.tar"));
    const std::string own = fetch == fetches_.data() ? "bytes 10000-16999: 403" : "bytes 20000-28999: 403";
    EXPECT_NE(error.what.find(own), std::string::npos) << error.what;
  }
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(HttpTransportTest, WhatCameBeforeAnErrorIsData) {
  serve_by([](const ServedRequest& request, std::uint64_t tries) {
    ServedAnswer answer = right(request);
    answer.breaks_after = 8000;
    if (tries > 0) answer = ServedAnswer{.status = 404};
    return answer;
  });
  start({{10'000, 7000}, {17'500, 9000}});
  for (std::size_t i = 0; i < 2; ++i) {
    const Fetch* const fetch = next();
    if (fetch == fetches_.data())
      expect_right(*fetch);
    else
      EXPECT_FALSE(fetch->bytes);
  }
}

TEST_F(HttpTransportTest, AnErrorOfOnePartOfASplitReadIsTheReads) {
  const std::string content = recognisable_bytes(20'000'000);
  serve_by(
      [&](const ServedRequest& request, std::uint64_t) {
        return request.range()->first < 5'000'000 || request.range()->first > 12'000'000
                   ? serve(request, content, kETag)
                   : ServedAnswer{.status = 400};
      },
      quick_limits(), content);
  start({{0, 20'000'000}});
  const Fetch* const fetch = next();
  ASSERT_FALSE(fetch->bytes);
  EXPECT_NE(fetch->bytes.error().what.find("400"), std::string::npos) << fetch->bytes.error().what;
}

TEST_F(HttpTransportTest, AWholeObjectInPlaceOfAJoinedRangeIsCutOut) {
  for (const bool breaks : {false, true}) {
    serve_by([&](const ServedRequest&, std::uint64_t tries) {
      ServedAnswer answer{.headers = {"ETag: " + kETag}, .body = kContent};
      if (breaks && tries == 0) answer.breaks_after = 15'000;
      return answer;
    });
    start({{10'000, 7000}, {20'000, 9000}, {30'000, 100}});
    expect_all_right();
    EXPECT_EQ(requests().size(), breaks ? 2u : 1u);
  }
}

TEST_F(HttpTransportTest, AnObjectThatChangedIsAnErrorOfEachRead) {
  for (const bool ignores : {false, true}) {
    serve_by([&](const ServedRequest& request, std::uint64_t) {
      ServedRequest asked = request;
      if (ignores) asked.headers.erase("if-match");
      return serve(asked, kContent, "\"second\"");
    });
    start({{10'000, 7000}, {20'000, 9000}});
    for (std::size_t i = 0; i < 2; ++i) {
      const Fetch* const fetch = next();
      ASSERT_FALSE(fetch->bytes);
      EXPECT_NE(fetch->bytes.error().what.find("changed between index and read"), std::string::npos);
    }
  }
}

TEST_F(HttpTransportTest, CancellingOneOfSeveralLeavesTheOthers) {
  std::atomic<bool> goes_on = false;
  serve_by([&](const ServedRequest& request, std::uint64_t) {
    while (!goes_on) std::this_thread::yield();
    return right(request);
  });
  start({{10'000, 7000}, {20'000, 9000}, {30'000, 5000}});
  EXPECT_EQ(queue_->finished({}), nullptr);  // the request is made
  queue_->cancel(fetches_[1]);
  EXPECT_EQ(next(), &fetches_[1]);
  EXPECT_EQ(fetches_[1].bytes.error().code, ErrorCode::kCancelled);
  goes_on = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const Fetch* const fetch = next();
    EXPECT_NE(fetch, &fetches_[1]);
    expect_right(*fetch);
  }
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(HttpTransportTest, CancellingAllEndsTheRequestAndBeforeItThereIsNone) {
  HttpLimits limits = quick_limits();
  limits.stall = 100s;
  serve_by(
      [](const ServedRequest& request, std::uint64_t) {
        ServedAnswer answer = right(request);
        answer.stalls_after = 100;
        return answer;
      },
      limits);
  start({{10'000, 7000}, {20'000, 9000}});
  queue_->cancel(fetches_[0]);
  EXPECT_EQ(next(), fetches_.data());
  EXPECT_EQ(queue_->finished({}), nullptr);
  queue_->cancel(fetches_[1]);
  EXPECT_EQ(next(), &fetches_[1]);
  queue_.reset();
  const auto longest = std::chrono::steady_clock::now() + 50s;
  while (orphaned_buffers() > 0 && std::chrono::steady_clock::now() < longest) std::this_thread::yield();
  EXPECT_EQ(orphaned_buffers(), 0u);
  ASSERT_LE(requests().size(), 1u);
  if (!requests().empty()) {
    EXPECT_EQ(requests()[0].range()->first, 20'000u) << "of the one that was not cancelled before";
  }
}

TEST_F(HttpTransportTest, VersionsThatCannotBeToldApartAreNotJoined) {
  server_ = std::make_unique<HttpServer>([](const ServedRequest& request) {
    ServedAnswer answer = right(request);
    answer.headers.erase(answer.headers.begin());
    return answer;
  });
  storage_ = std::make_shared<HttpStorage>(quick_limits());
  reader_ = *storage_->open(server_->url("/x.tar"), Access::kRead);
  queue_ = make_fetch_queue(storage_, QueueKind::kBest);
  start({{10'000, 7000}, {17'000, 9000}});
  expect_all_right();
  EXPECT_EQ(requests().size(), 2u);
}

TEST_F(HttpTransportTest, RandomReadsThroughFaultsAreRight) {
  HttpLimits limits = quick_limits();
  limits.tries = 30;
  limits.tries_in_all = 500;
  serve_by(
      [](const ServedRequest& request, std::uint64_t number) {
        ServedAnswer answer = right(request);
        if (number % 3 == 1) answer.breaks_after = answer.body.size() * (number % 7) / 7;
        if (number % 5 == 3) answer = ServedAnswer{.status = 503, .headers = {"Retry-After: 0"}};
        if (number % 11 == 5) answer = ServedAnswer{.headers = {"ETag: " + kETag}, .body = kContent};
        return answer;
      },
      limits);
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<Range> ranges(60);
    for (Range& range : ranges) range = {random() % 390'000, 1 + random() % 10'000};
    start(ranges);
    expect_all_right();
  }
  EXPECT_LT(requests().size(), 600u) << "of 1,200 reads";
}

TEST_F(HttpTransportTest, NoMoreRequestsThanAllowedAreMadeAndAllAreMade) {
  HttpLimits limits = quick_limits();
  limits.requests_per_s = 200;
  serve_by(rightly(), limits);
  std::vector<Range> ranges;
  for (std::uint64_t i = 0; i < 10; ++i) ranges.push_back({i * 40'000, 100});
  start(ranges);
  expect_all_right();
  EXPECT_EQ(requests().size(), 10u);
  EXPECT_GT(client_->tally().counts().held_back, 0u);
}

TEST_F(HttpTransportTest, WhatAHostDoesIsMeasured) {
  serve_by(rightly());
  start({{10'000, 300'000}});
  expect_all_right();
  const LinkSpeed speed = client_->tally().speed(server_->host());
  EXPECT_GT(speed.latency_s, 0);
  EXPECT_GT(speed.bytes_per_s, 0);
  EXPECT_EQ(client_->tally().speed("elsewhere").latency_s, 0);
}

}  // namespace
}  // namespace feedline::storage
