// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/adaptation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/test_conditions.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "pipeline/planning/thread_placement.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

// While this object exists, new pipelines use a different number of threads for every batch.
struct RandomThreads {
  RandomThreads() { base::test_conditions().random_threads = true; }
  ~RandomThreads() { base::test_conditions().random_threads = false; }
};

std::shared_ptr<const Recipe> recipe_of(std::shared_ptr<FakeFormat> format) {
  auto recipe = make_recipe({"fake", std::move(format)}, {op::RandomHorizontalFlip{}, op::CenterCrop{{4, 4}}},
                            std::nullopt, Layout::kNchw);
  EXPECT_TRUE(recipe) << recipe.error().message();
  return *recipe;
}

// adapts: start with the requested number of threads, however few CPUs there are.
std::unique_ptr<Pipeline> make(std::shared_ptr<FakeFormat> format, const LoaderOptions& options, bool adapts = true) {
  auto recipe = recipe_of(std::move(format));
  auto plan = plan_pipeline(*recipe, options);
  EXPECT_TRUE(plan) << plan.error().message();
  plan->adapts = adapts;
  if (adapts) plan->most_slots = std::max<std::uint64_t>(plan->slots, 1);
  if (adapts) plan->threads_with_gpu = std::clamp(share_of_cpus() - 1, 1, plan->threads);
  return std::make_unique<Pipeline>(std::move(recipe), *plan);
}

struct Row {
  std::int64_t label;
  std::vector<std::uint8_t> pixels;
  auto operator<=>(const Row&) const = default;
};
using Rows = std::vector<std::vector<Row>>;  // by batch

// Reads up to `most` batches of the current epoch.
Rows take(Pipeline& pipeline, std::size_t most = SIZE_MAX) {
  constexpr std::size_t kPixels = std::size_t{3} * 4 * 4;
  Rows rows;
  while (rows.size() < most) {
    Batch batch;
    const auto polled = pipeline.poll(200s, batch);
    EXPECT_TRUE(polled) << polled.error().message();
    if (!polled || *polled != Loader::Polled::kBatch) {
      EXPECT_TRUE(polled && *polled == Loader::Polled::kEnd) << "no batch arrives";
      break;
    }
    auto& batch_rows = rows.emplace_back();
    const auto* labels = batch.fields()[1].array.as<std::int64_t>();
    const auto* pixels = batch.fields()[0].array.as<std::uint8_t>();
    for (std::uint64_t row = 0; row < batch.rows(); ++row)
      batch_rows.push_back({labels[row], {pixels + row * kPixels, pixels + (row + 1) * kPixels}});
  }
  return rows;
}

Rows epoch_of(Pipeline& pipeline, const EpochStart& start) {
  EXPECT_TRUE(pipeline.begin(start, true));
  return take(pipeline);
}

Rows sorted(Rows rows) {
  std::ranges::sort(rows);
  return rows;
}

constexpr std::uint64_t kSize = 203;
LoaderOptions options_of(int threads, bool in_order = true) {
  return {.batch_size = 8, .shuffle = true, .seed = 5, .num_workers = threads, .in_order = in_order};
}

// The number of threads and the prefetch depth may change at any time without changing samples or their order.
TEST(Adaptation, SettingsShowInNoBatch) {
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReplace}) {
    const std::set<std::uint64_t> damaged =
        on_error == OnError::kRaise ? std::set<std::uint64_t>() : std::set<std::uint64_t>{3, 11, 77, 180};
    const auto format = std::make_shared<FakeFormat>(kSize, damaged);
    LoaderOptions options = options_of(2);
    options.on_error = on_error;
    const auto steady = make(format, options, false);
    for (const int threads : {1, 2, 3, 8}) {
      const RandomThreads random;
      options.num_workers = threads;
      const auto restless = make(format, options);
      for (const std::uint64_t epoch : {0u, 1u, 2u})
        EXPECT_EQ(epoch_of(*restless, {.epoch = epoch}), epoch_of(*steady, {.epoch = epoch})) << threads << " threads";
      EXPECT_GE(restless->stats().controller->changed, 3 * (kSize / 8)) << "nothing has changed";
    }
  }
}

TEST(Adaptation, SettingsShowInNoBatchThatComesAsItIsComplete) {
  const auto format = std::make_shared<FakeFormat>(kSize);
  const auto steady = make(format, options_of(1, false), false);
  const RandomThreads random;
  for (const int threads : {2, 3, 8}) {
    const auto restless = make(format, options_of(threads, false));
    for (const std::uint64_t epoch : {0u, 1u})
      EXPECT_EQ(sorted(epoch_of(*restless, {.epoch = epoch})), sorted(epoch_of(*steady, {.epoch = epoch})));
  }
}

TEST(Adaptation, AnEpochGoesOnWhereverItWasLeft) {
  const auto format = std::make_shared<FakeFormat>(kSize);
  for (const bool in_order : {true, false}) {
    const auto steady = make(format, options_of(2, in_order), false);
    const auto whole = sorted(epoch_of(*steady, {.epoch = 1}));
    const RandomThreads random;
    for (const std::size_t taken : {0u, 1u, 7u, 24u}) {
      const auto first = make(format, options_of(4, in_order));
      ASSERT_TRUE(first->begin({.epoch = 1}, false));
      Rows rows = take(*first, taken);
      const auto rest = epoch_of(*make(format, options_of(3, in_order)), first->position());
      rows.insert(rows.end(), rest.begin(), rest.end());
      EXPECT_EQ(sorted(rows), whole) << "after " << taken;
    }
  }
}

TEST(Adaptation, EndsWhereverThreadsAre) {
  const RandomThreads random;
  for (int i = 0; i < 40; ++i) {
    const auto pipeline = make(std::make_shared<FakeFormat>(kSize), options_of(6));
    ASSERT_TRUE(pipeline->begin({}, true));
    EXPECT_EQ(take(*pipeline, static_cast<std::size_t>(i % 9)).size(), static_cast<std::size_t>(i % 9));
    if (i % 3 == 0) pipeline->stop();
    if (i % 3 == 1) {
      ASSERT_TRUE(pipeline->begin({.epoch = 4}, false));
    }
  }
}

// Counts each thread's reads since the last call to clear().
class Readers {
 public:
  void note() {
    const std::lock_guard lock(mutex_);
    ++reads_[std::this_thread::get_id()];
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    reads_.clear();
  }
  std::size_t with(int least) const {  // threads with at least this many reads
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(reads_, [&](const auto& of) { return of.second >= least; }));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, int> reads_;
};

// All threads have started a batch; afterwards, fewer threads process the remaining rows.
TEST(Adaptation, ParkedThreadsDoNothing) {
  const RandomThreads random;
  constexpr std::size_t kThreads = 5;
  auto format = std::make_shared<FakeFormat>(200'000);
  Readers readers;
  format->before_read = [&](std::uint64_t) {
    std::this_thread::sleep_for(100us);
    readers.note();
  };
  LoaderOptions options = options_of(static_cast<int>(kThreads));
  options.batch_size = 10'000;
  const auto pipeline = make(format, options);
  ASSERT_TRUE(pipeline->begin({}, false));
  while (pipeline->stats().ready_batches == 0) std::this_thread::sleep_for(1ms);
  readers.clear();
  while (readers.with(1) < kThreads) std::this_thread::sleep_for(1ms);  // all threads work on the next batch
  ASSERT_EQ(take(*pipeline, 1).size(), 1u);
  const auto wanted = static_cast<std::size_t>(pipeline->stats().controller->threads);
  ASSERT_LT(wanted, kThreads) << "the generator's first draw is fewer threads";
  readers.clear();
  while (readers.with(500) < wanted) std::this_thread::sleep_for(1ms);
  // a thread may still be reading a run of two rows and have taken another one, however late it is scheduled
  constexpr int kInHand = 4;
  EXPECT_EQ(readers.with(kInHand + 1), wanted);
  EXPECT_EQ(pipeline->stats().threads, static_cast<int>(kThreads));
}

TEST(Adaptation, OneThreadFewerFeedsAGpu) {
  const int left = std::max(share_of_cpus() - 1, 1);
  const auto pipeline = make(std::make_shared<FakeFormat>(kSize), options_of(share_of_cpus() + 3));
  ASSERT_TRUE(pipeline->begin({}, false));
  EXPECT_EQ(pipeline->stats().controller->limit, share_of_cpus() + 3);
  const Rows whole = epoch_of(*pipeline, {.epoch = 1});
  ASSERT_TRUE(pipeline->begin({.epoch = 1}, false, true));
  EXPECT_EQ(pipeline->stats().controller->limit, left);
  EXPECT_EQ(pipeline->stats().controller->threads, left);
  EXPECT_EQ(take(*pipeline), whole);
  ASSERT_TRUE(pipeline->begin({.epoch = 2}, false));
  EXPECT_EQ(pipeline->stats().controller->limit, left) << "a loop that feeds a GPU resumes at";
}

TEST(Adaptation, AThreadThatIsParkedDoesNotSpin) {
  const auto pipeline = make(std::make_shared<FakeFormat>(kSize), options_of(share_of_cpus() + 6));
  ASSERT_TRUE(pipeline->begin({}, false, true));
  EXPECT_EQ(take(*pipeline, 2).size(), 2u);
  const auto cpu_s = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  // the prefetched batches fill up; then all threads wait and the process uses no CPU time
  double used = 1, before = cpu_s();
  for (int i = 0; i < 50 && used > 0.002; ++i) {
    std::this_thread::sleep_for(100ms);
    const double now = cpu_s();
    used = now - before;
    before = now;
  }
  EXPECT_LE(used, 0.002);
}

// ---- measurements and decisions, with simulated times ----

PipelinePlan plan_of(int threads, std::uint64_t slots = 2, std::uint64_t most_slots = 8) {
  PipelinePlan plan;
  plan.adapts = true;
  plan.threads = threads;
  plan.slots = slots;
  plan.most_slots = most_slots;
  return plan;
}

constexpr std::uint64_t kMs = 1'000'000;

TEST(Adaptation, ThreadsRestWhileTheLoopDoesNotWaitAndComeBackWhenItDoes) {
  const auto adaptation = Adaptation::make(plan_of(8), AdaptationMode::kAuto);
  IdleTime idle;
  std::uint64_t now = kMs;
  for (int i = 0; i < 7; ++i) idle.begin(now);
  int measured = 0;
  for (int i = 0; i < 600; ++i) {
    if (adaptation->delivered(now += 50 * kMs, 0, idle) != Adaptation::Next::kMeasure) continue;
    ++measured;
    adaptation->measured({});
  }
  EXPECT_NEAR(measured, 600 / 4, 2) << "five times a second";
  EXPECT_EQ(adaptation->settings().threads, 1);
  EXPECT_FALSE(adaptation->waits(now + 100 * kMs, 100 * kMs));
  EXPECT_TRUE(adaptation->waits(now + 900 * kMs, 900 * kMs));
  EXPECT_EQ(adaptation->settings().threads, 8);
  const auto stats = adaptation->decided().stats(kMs);
  EXPECT_EQ(stats.changed, adaptation->changes());
  EXPECT_EQ(stats.changes.size(), stats.changed);
  EXPECT_EQ(stats.changes.front().from, 8);
  EXPECT_EQ(stats.changes.back().to, 8);
  EXPECT_GT(stats.changes.front().at_s, 0.5);
  EXPECT_FALSE(stats.changes.front().why.empty());
}

TEST(Adaptation, KeepsTheLatestChangesOnly) {
  const auto adaptation = Adaptation::make(plan_of(8), AdaptationMode::kRandom);
  for (std::uint64_t i = 1; i <= 1000; ++i)
    EXPECT_EQ(adaptation->delivered(i * kMs, 0, IdleTime()), Adaptation::Next::kChanged);
  const auto stats = adaptation->decided().stats(0);
  EXPECT_EQ(stats.changed, 1000u);
  EXPECT_EQ(stats.changes.size(), 64u);
  EXPECT_DOUBLE_EQ(stats.changes.back().at_s, 1.0);
  for (const auto& change : stats.changes) {
    EXPECT_LE(1, change.to);
    EXPECT_LE(change.to, 8);
    EXPECT_LE(change.ahead_to, 8u);
  }
}

TEST(Adaptation, IdleTimeCountsThreadsThatStillWait) {
  IdleTime idle;
  idle.begin(100);
  idle.begin(150);
  EXPECT_EQ(idle.total_ns(200), 150u);
  idle.end(100, 300);
  EXPECT_EQ(idle.total_ns(400), 450u);
  const std::uint64_t then = idle.total_ns(500);
  idle.end(150, 600);
  EXPECT_EQ(idle.total_ns(900) - then, 100u);
}

TEST(Adaptation, ANumberThatIsGivenStays) {
  const auto recipe = recipe_of(std::make_shared<FakeFormat>(kSize));
  const auto given = plan_pipeline(*recipe, {.batch_size = 8, .num_workers = 2});
  EXPECT_EQ(Adaptation::make(*given, AdaptationMode::kAuto), nullptr);
  const auto automatic = plan_pipeline(*recipe, {.batch_size = 8});
  EXPECT_EQ(automatic->threads, share_of_cpus());
  EXPECT_NE(Adaptation::make(*automatic, AdaptationMode::kAuto), nullptr);
  EXPECT_EQ(Adaptation::make(*automatic, AdaptationMode::kOff), nullptr);
  EXPECT_EQ(automatic->threads_with_gpu, std::max(share_of_cpus() - 1, 1));
  EXPECT_EQ(given->threads_with_gpu, 2) << "the given value is unchanged";
  const auto at_most = plan_given(*recipe, {.batch_size = 8, .most_workers = 1});
  EXPECT_EQ(at_most->threads, 1);
  EXPECT_EQ(at_most->threads_with_gpu, 1);
  EXPECT_TRUE(at_most->adapts);
  EXPECT_EQ(plan_given(*recipe, {.batch_size = 8, .num_workers = 3, .most_workers = 1})->threads, 3);
}

// Whatever the controller decides, batches and read-ahead stay within the memory budget.
TEST(Adaptation, StaysWithinTheMemoryBudget) {
  const auto recipe = recipe_of(std::make_shared<FakeFormat>(kSize));
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{5000}, std::uint64_t{1} << 20}) {
    const auto plan = plan_pipeline(*recipe, {.batch_size = 8, .memory_budget = budget});
    EXPECT_LE(plan->most_slots * plan->batch_bytes + plan->read_ahead_bytes, plan->memory_budget);
    EXPECT_GE(plan->most_slots, plan->slots);
    const RandomThreads random;
    Pipeline pipeline(recipe, *plan);
    epoch_of(pipeline, {});
    EXPECT_LE(pipeline.stats().held_bytes_peak, plan->memory_budget);
  }
}

}  // namespace
}  // namespace feedline::pipeline
