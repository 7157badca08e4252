// SPDX-License-Identifier: Apache-2.0
// Hedged requests: the first response wins, whichever it is, and few are sent.
#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

#include "storage/http/http_server_fixture.h"
#include "storage/http/remote_storage.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

const std::string kContent = recognisable_bytes(20'000);
constexpr int kWarmUp = 80;  // answers, after which it is known what is late

class HedgeTest : public testing::Test {
 protected:
  // Starts a server that answers requests for /slow with the result of `slow`, which may wait, and all other requests
  // immediately.
  void serve_by(std::function<ServedAnswer(const ServedRequest&, int slow_ones)> slow) {
    server_ = std::make_unique<HttpServer>([this, slow = std::move(slow)](const ServedRequest& request) {
      if (request.target != "/slow") return serve(request, kContent, "\"e\"");
      int number = 0;
      {
        const std::lock_guard lock(mutex_);
        number = slow_ones_++;
        changed_.notify_all();
      }
      return slow(request, number);
    });
  }
  ~HedgeTest() override { release(); }
  // Waits until `count` requests for /slow have arrived, or the test ends.
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return slow_ones_ >= count || released_; });
  }
  void wait_for_release() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return released_; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  std::shared_ptr<const Storage> storage(bool hedges) {
    HttpLimits limits;
    limits.first_pause = limits.longest_pause = 1ms;
    limits.least_late = 20ms;
    if (!client_) client_ = std::move(*Client::make(limits));
    if (!base_) base_ = std::make_unique<HttpStorage>(limits, client_.get());
    return base_->reading({.hedges = hedges});
  }
  void warm_up(const Storage& storage) {
    const auto reader = storage.open(server_->url("/quick"), Access::kRead);
    ASSERT_TRUE(reader) << reader.error().message();
    for (int i = 0; i < kWarmUp; ++i) EXPECT_EQ(text_at(**reader, 5000), kContent.substr(5000, 100));
  }
  static std::string text_at(const Reader& reader, std::uint64_t offset) {
    std::vector<std::byte> room(100);
    const auto got = reader.read_at(offset, room);
    return got ? text_of(std::span(room).first(*got)) : got.error().message();
  }
  std::unique_ptr<Reader> slow_reader(const Storage& storage) {
    const auto version = storage.stat(server_->url("/quick"));  // the same object by another name
    return std::move(*storage.open_version(server_->url("/slow"), Access::kRead, *version));
  }
  int slow_ones() {
    const std::lock_guard lock(mutex_);
    return slow_ones_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int slow_ones_ = 0;
  bool released_ = false;
  std::unique_ptr<Client> client_;
  std::unique_ptr<HttpStorage> base_;  // over all datasets
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HedgeTest, ASecondRequestAnswersForOneThatDoesNot) {
  serve_by([this](const ServedRequest& request, int number) {
    if (number == 0) wait_for_release();
    return serve(request, kContent, "\"e\"");
  });
  const auto remote = storage(true);
  warm_up(*remote);
  EXPECT_EQ(text_at(*slow_reader(*remote), 7000), kContent.substr(7000, 100));
  EXPECT_EQ(slow_ones(), 2);
  EXPECT_GE(client_->tally().counts().hedges, 1u);
  EXPECT_EQ(remote->summary().find(" 0 second requests"), std::string::npos) << remote->summary();
  EXPECT_NE(remote->summary().find("second requests for late ones"), std::string::npos) << remote->summary();
  EXPECT_EQ(remote->summary().find("of which 0 were"), std::string::npos) << remote->summary();
  const auto counted = remote->second_requests();
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->made, client_->tally().counts().hedges);
  EXPECT_GE(counted->won, 1u);
  EXPECT_LE(counted->won, counted->made);
  EXPECT_EQ(storage(true)->second_requests()->made, 0u) << "another dataset's are its own";
}

TEST_F(HedgeTest, ThereIsNoneUnlessItIsAskedFor) {
  serve_by([](const ServedRequest& request, int) {
    std::this_thread::sleep_for(100ms);  // much too late
    return serve(request, kContent, "\"e\"");
  });
  const auto remote = storage(false);
  warm_up(*remote);
  EXPECT_EQ(text_at(*slow_reader(*remote), 7000), kContent.substr(7000, 100));
  EXPECT_EQ(slow_ones(), 1);
  EXPECT_EQ(client_->tally().counts().hedges, 0u);
  EXPECT_EQ(remote->summary(), "");
  EXPECT_FALSE(remote->second_requests());
}

TEST_F(HedgeTest, ARefusalIsPassedOverWhileTheOtherMayCome) {
  serve_by([this](const ServedRequest& request, int number) {
    if (number == 1) return ServedAnswer{.status = 503, .body = std::string(1000, 'x')};
    wait_for(2);
    std::this_thread::sleep_for(100ms);  // so that the refusal comes first; the outcome does not depend on it
    return serve(request, kContent, "\"e\"");
  });
  const auto remote = storage(true);
  warm_up(*remote);
  EXPECT_EQ(text_at(*slow_reader(*remote), 7000), kContent.substr(7000, 100));
  EXPECT_EQ(slow_ones(), 2) << "no third one: nothing was refused";
  EXPECT_GT(remote->second_requests()->dropped_bytes, 0u);
}

TEST_F(HedgeTest, BothRefusedAreARefusal) {
  serve_by([this](const ServedRequest&, int number) {
    if (number == 0) wait_for(2);
    return ServedAnswer{.status = 404};
  });
  const auto remote = storage(true);
  warm_up(*remote);
  EXPECT_NE(text_at(*slow_reader(*remote), 7000).find("404"), std::string::npos);
}

TEST_F(HedgeTest, BothAreHeldToTheSameVersion) {
  serve_by([this](const ServedRequest& request, int number) {
    if (number == 0) wait_for_release();
    return serve(request, recognisable_bytes(20'001), "\"other\"");
  });
  const auto remote = storage(true);
  warm_up(*remote);
  EXPECT_NE(text_at(*slow_reader(*remote), 7000).find("changed between index and read"), std::string::npos);
}

// If a host is slow for all requests, hardly any additional requests are sent to it.
TEST_F(HedgeTest, ThereAreFewOfThem) {
  constexpr int kReads = 40;
  serve_by([this](const ServedRequest& request, int) {
    wait_for(kReads + 1);  // a hedged request
    return serve(request, kContent, "\"e\"");
  });
  const auto remote = storage(true);
  warm_up(*remote);
  const auto reader = slow_reader(*remote);
  std::vector<std::thread> threads;
  for (int i = 0; i < kReads; ++i)
    threads.emplace_back([&, i] {
      const std::uint64_t offset = static_cast<std::uint64_t>(i) * 100 + 5000;
      EXPECT_EQ(text_at(*reader, offset), kContent.substr(offset, 100));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(client_->tally().counts().hedges, 1u);
  EXPECT_LE(client_->tally().counts().hedges, 4u + 1u) << "3 in 100, and no more than 4 at once";
}

}  // namespace
}  // namespace feedline::storage
