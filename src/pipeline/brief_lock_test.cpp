// SPDX-License-Identifier: Apache-2.0

// The loader must make no system call under the locks of the pipeline and of read-ahead, in any operation, including
// warm-up. brief_lock_fixture.h describes how calls are detected.

#include "base/brief_lock.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>
#include <thread>
#include <vector>

#include "base/test_conditions.h"
#include "format/folder/folder_format.h"
#include "pipeline/brief_lock_fixture.h"
#include "pipeline/fake_device.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "storage/slow_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

class BriefLockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FEEDLINE_WATCH_LOCKS) GTEST_SKIP() << "under a sanitizer, or on a machine that is not x86-64";
    if (!lock_watch::start()) GTEST_SKIP() << "this kernel has no syscall user dispatch (Linux 5.11)";
  }
  void TearDown() override { base::test_conditions() = {}; }

  static std::shared_ptr<const Recipe> recipe_of(std::shared_ptr<const format::Format> format) {
    auto recipe = make_recipe({"fake", std::move(format)}, {op::RandomHorizontalFlip{}, op::CenterCrop{{4, 4}}},
                              std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe) << recipe.error().message();
    return *recipe;
  }
  // adapts: start with the requested number of threads, even if there are fewer CPUs.
  static std::unique_ptr<Pipeline> make(const std::shared_ptr<const Recipe>& recipe, const LoaderOptions& options,
                                        bool adapts = false) {
    auto plan = plan_pipeline(*recipe, options);
    EXPECT_TRUE(plan) << plan.error().message();
    plan->adapts = adapts;
    return std::make_unique<Pipeline>(recipe, *plan);
  }
  static std::unique_ptr<Pipeline> make_given(const std::shared_ptr<const Recipe>& recipe,
                                              const LoaderOptions& options) {
    auto plan = plan_given(*recipe, options);
    EXPECT_TRUE(plan) << plan.error().message();
    return std::make_unique<Pipeline>(recipe, *plan);
  }
  // Reads batches of the current epoch, and skips sample errors.
  static std::size_t take(Pipeline& pipeline, std::size_t most = SIZE_MAX) {
    std::size_t batches = 0;
    while (batches < most) {
      Batch batch;
      const auto polled = pipeline.poll(200s, batch);
      if (polled && *polled == Loader::Polled::kEnd) break;
      EXPECT_TRUE(!polled || *polled == Loader::Polled::kBatch) << "no batch arrives";
      batches += polled ? 1 : 0;
    }
    return batches;
  }
};

// Checks that calls are detected: otherwise the other tests would pass vacuously.
TEST_F(BriefLockTest, SeesWhatIsDoneUnderTheLockAndNothingElse) {
  std::mutex mutex;
  std::condition_variable changed;
  const auto ask_all = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    EXPECT_GT(time.tv_sec + time.tv_nsec, 0) << "the call was made";
    void* pages = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    EXPECT_EQ(::munmap(pages, 4096), 0);
    EXPECT_EQ(::close(-1), -1);
  };
  ask_all();
  {
    base::BriefLock lock(mutex);
    lock.wait_until(changed, std::chrono::steady_clock::now() + 1ms);
    lock.unlock();
    ask_all();
    lock.lock();
  }
  ask_all();
  EXPECT_EQ(lock_watch::seen(), "");
  std::thread([&] {
    const base::BriefLock lock(mutex);
    ask_all();
    EXPECT_NE(std::make_unique<std::string>(100, 'x')->size(), 0u);
  }).join();
  EXPECT_GE(lock_watch::allocations, 2u);
  const auto seen_of = [](long number) { return lock_watch::calls[static_cast<std::size_t>(number)].load(); };
  EXPECT_GE(seen_of(SYS_clock_gettime), 1u) << lock_watch::seen();
  EXPECT_GE(seen_of(SYS_mmap), 1u) << lock_watch::seen();
  EXPECT_GE(seen_of(SYS_munmap), 1u) << lock_watch::seen();
  EXPECT_GE(seen_of(SYS_close), 1u) << lock_watch::seen();
}

TEST_F(BriefLockTest, EpochsAskForNothing) {
  const auto recipe = recipe_of(std::make_shared<FakeFormat>(2000));
  for (const bool in_order : {true, false}) {
    const auto pipeline = make(recipe, {.batch_size = 16, .shuffle = true, .num_workers = 4, .in_order = in_order});
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      ASSERT_TRUE(pipeline->begin({.epoch = epoch}, true));
      EXPECT_EQ(take(*pipeline, epoch == 3 ? 7 : SIZE_MAX), epoch == 3 ? 7u : 125u) << "one is interrupted";
    }
    EXPECT_EQ(lock_watch::seen(), "") << "in order: " << in_order;
    EXPECT_EQ(lock_watch::allocations, 0u) << "in order: " << in_order;
  }
}

// The memory of each batch is allocated from the kernel, moved and freed.
TEST_F(BriefLockTest, LargeBatchesAskForNothing) {
  auto recipe =
      make_recipe({"fake", std::make_shared<FakeFormat>(600)}, {op::Resize{{256, 256}}}, std::nullopt, Layout::kNchw);
  ASSERT_TRUE(recipe) << recipe.error().message();
  const auto pipeline = make(*recipe, {.batch_size = 60, .num_workers = 3});
  EXPECT_GT(pipeline->plan().batch_bytes, 10u << 20);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(pipeline->begin({.epoch = epoch}, true));
    EXPECT_EQ(take(*pipeline, 8), 8u);
  }
  EXPECT_EQ(lock_watch::seen(), "");
  EXPECT_EQ(lock_watch::allocations, 0u);
}

TEST_F(BriefLockTest, GivenOrdersAskForNothing) {
  const auto pipeline = make_given(recipe_of(std::make_shared<FakeFormat>(2000)), {.batch_size = 16, .num_workers = 3});
  ASSERT_TRUE(pipeline->begin({}, true));
  for (std::uint64_t batch = 0; batch < 300; ++batch) {
    ASSERT_TRUE(pipeline->give(std::vector<GivenSample>(16, {batch, batch})));
    if (batch < 3) continue;
    EXPECT_EQ(take(*pipeline, 1), 1u);
  }
  EXPECT_EQ(lock_watch::seen(), "");
  EXPECT_EQ(lock_watch::allocations, 0u);
}

// A device with its own memory, lock and thread that receives every batch.
TEST_F(BriefLockTest, ADeviceAsksForNothing) {
  const auto recipe = recipe_of(std::make_shared<FakeFormat>(2000));
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip}) {
    const auto plan = plan_pipeline(*recipe, {.batch_size = 16, .num_workers = 4, .on_error = on_error});
    ASSERT_TRUE(plan);
    const auto device = std::make_shared<SlowDevice>(
        SlowDevice::Behaviour{.takes = [](std::uint64_t number) { return std::chrono::milliseconds(number % 3); }});
    Pipeline pipeline(recipe, *plan, device);
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      ASSERT_TRUE(pipeline.begin({.epoch = epoch}, true));
      EXPECT_EQ(take(pipeline, epoch == 2 ? 7 : SIZE_MAX), epoch == 2 ? 7u : 125u) << "one is interrupted";
    }
    EXPECT_EQ(lock_watch::seen(), "");
    EXPECT_EQ(lock_watch::allocations, 0u);
  }
}

// Enables the controller's measurements: each thread's clock and the cgroup's quota.
TEST_F(BriefLockTest, AControllerAsksForNothing) {
  for (const bool random : {false, true}) {
    base::test_conditions().random_threads = random;
    const auto format = std::make_shared<FakeFormat>(100'000);
    format->before_read = [](std::uint64_t) { std::this_thread::sleep_for(50us); };
    const auto pipeline = make(recipe_of(format), {.batch_size = 16, .num_workers = 6}, true);
    ASSERT_TRUE(pipeline->begin({}, false));
    const auto deadline = std::chrono::steady_clock::now() + 1s;  // five intervals
    while (std::chrono::steady_clock::now() < deadline) EXPECT_EQ(take(*pipeline, 4), 4u);
    ASSERT_TRUE(pipeline->begin({.epoch = 1}, false, true));
    EXPECT_EQ(take(*pipeline, 4), 4u);
    EXPECT_EQ(lock_watch::seen(), "") << random;
    EXPECT_EQ(lock_watch::allocations, 0u) << random;
  }
}

TEST_F(BriefLockTest, QuestionsOfOtherThreadsAskForNothing) {
  const auto pipeline =
      make(recipe_of(std::make_shared<FakeFormat>(20'000)), {.batch_size = 16, .num_workers = 3}, true);
  ASSERT_TRUE(pipeline->begin({}, true));
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      EXPECT_EQ(pipeline->stats().threads, 3);
      EXPECT_LE(pipeline->position().position, 20'000u);
      EXPECT_LE(pipeline->rows_per_rank().size(), 1u);
      EXPECT_TRUE(pipeline->bad_samples().empty());
      EXPECT_TRUE(pipeline->has_batches());
      EXPECT_EQ(pipeline->bad_count(), 0u);
    }
  });
  EXPECT_EQ(take(*pipeline), 1250u);
  done = true;
  other.join();
  pipeline->stop();
  EXPECT_EQ(lock_watch::seen(), "");
  EXPECT_EQ(lock_watch::allocations, 0u);
}

// Exercises the lock of read-ahead: the thread starts and is woken, fetches start and finish, and the depth is reduced
// again.
TEST_F(BriefLockTest, ReadingAheadAsksForNothing) {
  const storage::TemporaryFolder folder;
  for (int i = 0; i < 96; ++i) {
    const auto png = plain_png(static_cast<std::uint8_t>(i));
    folder.write("data/" + std::to_string(100 + i) + "/image.png",
                 {reinterpret_cast<const char*>(png.data()), png.size()});
  }
  using enum base::ReadAheadMode;
  for (const base::ReadAheadMode mode : {kAlways, kThreads, kAuto}) {
    base::test_conditions().read_ahead = mode;
    for (const bool given : {false, true}) {
      const auto slow =
          std::make_shared<storage::SlowStorage>(storage::local_storage(), storage::SlowReads{.latency = 2ms});
      auto format = format::FolderFormat::open(folder.path("data"), {.storage = slow});
      ASSERT_TRUE(format) << format.error().message();
      const auto pipeline = given ? make_given(recipe_of(*format), {.batch_size = 8, .num_workers = 6})
                                  : make(recipe_of(*format), {.batch_size = 8, .shuffle = true, .num_workers = 6});
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
        ASSERT_TRUE(pipeline->begin({.epoch = epoch}, true));
        for (std::uint64_t batch = 0; given && batch < 12; ++batch)
          ASSERT_TRUE(pipeline->give(std::vector<GivenSample>(8, {batch * 8 + epoch, batch})));
        EXPECT_EQ(take(*pipeline, epoch == 2 ? 3 : 12), epoch == 2 ? 3u : 12u);
      }
      EXPECT_NE(pipeline->explain_reads().find("now, at most"), std::string::npos) << pipeline->explain_reads();
      pipeline->stop();
      EXPECT_EQ(lock_watch::seen(), "") << static_cast<int>(mode) << given;
    }
  }
}

// Bad samples' errors and messages are created outside the lock. Nothing is allocated under the lock, however many bad
// samples there are: every third sample, several in a row, and bad refills.
TEST_F(BriefLockTest, BadSamplesAskForNothing) {
  std::set<std::uint64_t> bad;
  for (std::uint64_t sample = 0; sample < 2000; ++sample)
    if (sample % 3 == 0 || sample / 50 % 7 == 2 || sample > 1900) bad.insert(sample);
  const auto recipe = recipe_of(std::make_shared<FakeFormat>(2000, bad));
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReplace, OnError::kReport}) {
    for (const bool in_order : {true, false}) {
      const auto pipeline = make(
          recipe, {.batch_size = 16, .shuffle = true, .num_workers = 4, .in_order = in_order, .on_error = on_error});
      std::uint64_t known = 0;
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        ASSERT_TRUE(pipeline->begin({.epoch = epoch}, true));
        take(*pipeline, epoch == 1 ? 7 : SIZE_MAX);
        known = pipeline->bad_samples(known).size() + known;
      }
      const std::string which = std::to_string(static_cast<int>(on_error)) + (in_order ? "" : ", not in order");
      EXPECT_EQ(known, pipeline->bad_count()) << which;
      if (on_error == OnError::kSkip || on_error == OnError::kReplace) {
        EXPECT_GT(known, bad.size()) << which;
      }
      EXPECT_EQ(lock_watch::seen(), "") << which;
      EXPECT_EQ(lock_watch::allocations, 0u) << which;
    }
  }
}

// Tests too many bad samples, an interrupted loader and a closed loader; each returns an error repeatedly.
TEST_F(BriefLockTest, EndsWithAnErrorAskForNothing) {
  const auto recipe = recipe_of(std::make_shared<FakeFormat>(800, std::set<std::uint64_t>{3, 11, 77, 180, 500}));
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace}) {
    const auto pipeline = make(recipe, {.batch_size = 8, .num_workers = 3, .on_error = on_error, .error_budget = 3});
    const auto error_of = [&] {
      Batch batch;
      while (true) {
        const auto polled = pipeline->poll(200s, batch);
        if (!polled) return polled.error();
        if (*polled != Loader::Polled::kBatch) return Error{};
      }
    };
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      ASSERT_TRUE(pipeline->begin({.epoch = epoch}, true));
      pipeline->interrupt();
      EXPECT_EQ(error_of().code, ErrorCode::kCancelled);
      for (int again = 0; again < 3; ++again)
        EXPECT_NE(error_of().what.find("error_budget=3"), std::string::npos) << error_of().what;
    }
    pipeline->stop();
    EXPECT_EQ(error_of().code, ErrorCode::kCancelled);
    EXPECT_FALSE(pipeline->begin({}, true));
    EXPECT_EQ(lock_watch::seen(), "");
    EXPECT_EQ(lock_watch::allocations, 0u);
  }
}

}  // namespace
}  // namespace feedline::pipeline
