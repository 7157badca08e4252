// SPDX-License-Identifier: Apache-2.0
// Tests the guarantees of include/feedline/loader.h about threads and fork().
#include "feedline/loader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "feedline/dataset.h"

namespace feedline {
namespace {

constexpr std::chrono::seconds kHang{200};  // exceeded only by a hang

class LoaderTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSamples = 103;

  Result<Dataset> dataset() const {
    return arrays({{"y", reinterpret_cast<const std::byte*>(rows_.data()), rows_.size(), 1, {DType::kUint8, {}}, {}}});
  }
  Loader loader(const LoaderOptions& options) const {
    auto made = dataset()->loader(options);
    EXPECT_TRUE(made) << made.error().message();
    return std::move(*made);
  }
  Loader given_loader(const LoaderOptions& options) const {
    auto made = dataset()->given_loader(options);
    EXPECT_TRUE(made) << made.error().message();
    return std::move(*made);
  }
  static std::uint64_t rest_of_epoch(Loader& loader) {
    std::uint64_t rows = 0;
    while (true) {
      auto batch = loader.next();
      EXPECT_TRUE(batch) << batch.error().message();
      if (!batch || !*batch) return rows;
      rows += (*batch)->rows();
    }
  }
  static void expect_interrupted(const Result<std::optional<Batch>>& got) {
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(got.error().what, "interrupted");
  }

  std::vector<std::uint8_t> rows_ = std::vector<std::uint8_t>(kSamples, 7);
};

TEST_F(LoaderTest, InterruptEndsAWaitAndNothingIsLost) {
  Loader given = given_loader({.batch_size = 4, .num_workers = 2});
  ASSERT_TRUE(given.start_epoch());
  std::atomic<bool> is_over = false;
  std::thread other([&] {  // repeatedly: the start of the wait in next() is not observable
    while (!is_over) {
      given.interrupt();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  expect_interrupted(given.next());  // no samples were given: it would wait forever
  Batch batch;
  const auto polled = given.poll(kHang, batch);
  is_over = true;
  other.join();
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().code, ErrorCode::kCancelled);
  ASSERT_TRUE(given.give({{3, 0}, {4, 0}}));
  ASSERT_TRUE(given.end_giving());
  auto next = given.next();
  if (!next) next = given.next();  // from an interrupt after the last wait
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->rows(), 2u);
}

TEST_F(LoaderTest, InterruptBeforeACallEndsThatCallAlone) {
  Loader plain = loader({.batch_size = 10, .num_workers = 2});
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto first = plain.next();
    ASSERT_TRUE(first && *first);
    plain.interrupt();
    plain.interrupt();
    expect_interrupted(plain.next());
    EXPECT_EQ(rest_of_epoch(plain), kSamples - 10);
  }
}

TEST_F(LoaderTest, OptionsStayAsTheyWerePassed) {
  const LoaderOptions options{
      .batch_size = 10, .in_order = false, .on_error = OnError::kSkip, .rank = 1, .world_size = 2};
  Loader made = loader(options);
  EXPECT_EQ(made.options().num_workers, 0);
  EXPECT_EQ(made.options().memory_budget, 0u);
  EXPECT_EQ(made.options().on_error, OnError::kSkip);
  EXPECT_FALSE(made.options().in_order);
  const auto text = made.explain();
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("replaced, not skipped: a rank that ends early"), std::string::npos) << *text;
  EXPECT_NE(text->find("in order, because there are several ranks"), std::string::npos) << *text;
}

TEST_F(LoaderTest, AGivenOrderIsExplainedAsOne) {
  Loader given = given_loader({.batch_size = 4, .num_workers = 2, .on_error = OnError::kSkip});
  EXPECT_EQ(given.options().batch_size, 4u);
  const auto text = given.explain();
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("given by the caller, in batches of up to 4"), std::string::npos) << *text;
  EXPECT_NE(text->find("replaced, not skipped: the end of a given order"), std::string::npos) << *text;
}

// Checks for data races (under the thread sanitizer), and that every state is the state after a completed call.
TEST_F(LoaderTest, AnyThreadMayAskWhileTheConsumerGoesOn) {
  Loader asked = loader({.batch_size = 10, .shuffle = true, .num_workers = 2});
  std::atomic<bool> is_over = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&] {
      std::uint64_t epoch = 0;
      while (!is_over) {
        const auto state = asked.state();
        ASSERT_TRUE(state);
        EXPECT_EQ(state->position % 10 == 0 || state->position == kSamples, true) << state->position;
        EXPECT_GE(state->epoch, epoch);
        epoch = state->epoch;
        EXPECT_TRUE(asked.stats() && asked.errors() && asked.error_count() && asked.explain() && asked.rows_per_rank());
        EXPECT_EQ(asked.batches(), 11u);
        asked.changes();
        asked.interrupt();
      }
    });
  const auto next = [&] {
    while (true)
      if (auto batch = asked.next(); batch || batch.error().code != ErrorCode::kCancelled) return batch;
  };
  for (std::uint64_t epoch = 0; epoch < 30; ++epoch) {
    if (epoch % 3 == 2) asked.set_epoch(epoch);
    std::uint64_t rows = 0;
    while (true) {
      const auto batch = next();
      ASSERT_TRUE(batch);
      if (!*batch) break;
      rows += (*batch)->rows();
      if (rows != 50 || epoch % 2 == 0) continue;
      const auto here = asked.state();
      ASSERT_TRUE(here);
      EXPECT_EQ(here->position, 50u);
      ASSERT_TRUE(asked.restore(*here));
    }
    EXPECT_EQ(rows, kSamples);
  }
  is_over = true;
  for (std::thread& other : others) other.join();
}

#if !defined(__SANITIZE_THREAD__)

// Returns 0 if every call returned the documented result, else the number of the first call that did not.
int answers_of_a_child(Loader& loader) {
  const auto refused = [](const auto& answer) {
    return !answer && answer.error().code == ErrorCode::kConfig && answer.error().what.contains("fork()");
  };
  Batch batch;
  const std::vector<std::function<bool()>> calls{
      [&] { return refused(loader.next()); },
      [&] { return refused(loader.poll(std::chrono::milliseconds(1), batch)); },
      [&] { return refused(loader.start_epoch()); },
      [&] {
        return refused(loader.give({{0, 0}}));
      },
      [&] { return refused(loader.end_giving()); },
      [&] { return refused(loader.rows_per_rank()); },
      [&] { return refused(loader.stats()); },
      [&] { return refused(loader.errors()); },
      [&] { return refused(loader.error_count()); },
      [&] { return refused(loader.state()); },
      [&] { return refused(loader.restore({})); },
      [&] { return refused(loader.explain()); },
      [&] { return loader.batches() == 11 && loader.schema().size() == 1 && loader.options().batch_size == 10; },
      [&] {
        loader.interrupt();
        loader.set_epoch(8);
        loader.changes();
        loader.epoch();
        loader.close();
        return true;
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (!calls[i]()) return static_cast<int>(i) + 1;
  const Loader gone = std::move(loader);
  return 0;
}

// Forks at arbitrary times, when threads of the parent may hold any lock.
TEST_F(LoaderTest, AChildIsRefusedEveryCallWithoutALock) {
  Loader parent = loader({.batch_size = 10, .num_workers = 3});
  ASSERT_TRUE(parent.start_epoch());
  std::atomic<bool> is_over = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!is_over) EXPECT_TRUE(parent.state() && parent.stats() && parent.errors());
    });
  for (int fork_number = 0; fork_number < 60; ++fork_number) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(static_cast<unsigned>(kHang.count()));  // ends a hang
      ::_exit(answers_of_a_child(parent));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "it hangs";
    ASSERT_EQ(WEXITSTATUS(status), 0) << "the call with this number";
  }
  is_over = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(rest_of_epoch(parent), kSamples);
}

TEST_F(LoaderTest, ALoaderThatWasNotBegunIsTheChildsOwn) {
  Loader fresh = loader({.batch_size = 10, .num_workers = 2});
  ASSERT_TRUE(fresh.state() && fresh.stats());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(static_cast<unsigned>(kHang.count()));
    ::_exit(rest_of_epoch(fresh) == kSamples && fresh.stats() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(rest_of_epoch(fresh), kSamples);
}

#endif

TEST(LoaderOptions, TooManyThreadsAreOneMessage) {
  const std::vector<std::uint8_t> rows(4);
  const auto dataset =
      arrays({{"y", reinterpret_cast<const std::byte*>(rows.data()), rows.size(), 1, {DType::kUint8, {}}, {}}});
  for (const int count : {-1, 1025, 4096}) {
    const auto refused = dataset->loader({.batch_size = 1, .num_workers = count});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(),
              "loader: num_workers must be between 0 and 1024, got " + std::to_string(count));
  }
  EXPECT_TRUE(dataset->loader({.batch_size = 1, .num_workers = 1024}));
}

}  // namespace
}  // namespace feedline
