// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "pipeline/fake_format.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kHang = 200s;  // exceeded only by a hang

struct Delivered {
  std::vector<std::vector<std::int64_t>> labels;
  std::vector<std::vector<std::uint8_t>> pixels;  // first pixel of each row
  std::vector<Error> errors;
};

class PipelineTest : public testing::Test {
 protected:
  static std::shared_ptr<const Recipe> recipe(std::shared_ptr<FakeFormat> format) {
    auto recipe = make_recipe({"fake", std::move(format)}, {op::RandomHorizontalFlip{}, op::CenterCrop{{4, 4}}},
                              std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe) << recipe.error().message();
    return *recipe;
  }
  static std::unique_ptr<Pipeline> pipeline(std::shared_ptr<FakeFormat> format, const LoaderOptions& options) {
    auto made = recipe(std::move(format));
    auto plan = plan_pipeline(*made, options);
    EXPECT_TRUE(plan) << plan.error().message();
    return std::make_unique<Pipeline>(std::move(made), *plan);
  }
  static std::unique_ptr<Pipeline> given_pipeline(std::shared_ptr<FakeFormat> format, const LoaderOptions& options) {
    auto made = recipe(std::move(format));
    auto plan = plan_given(*made, options);
    EXPECT_TRUE(plan) << plan.error().message();
    return std::make_unique<Pipeline>(std::move(made), *plan);
  }
  static Delivered run(Pipeline& pipeline, EpochStart start = {}, bool prepare_next = false,
                       std::size_t most_errors = 1000) {
    EXPECT_TRUE(pipeline.begin(start, prepare_next));
    Delivered delivered;
    while (take(pipeline, delivered) && delivered.errors.size() < most_errors) continue;
    return delivered;
  }
  // Reads the next batch or an error; returns false at the end of the epoch.
  static bool take(Pipeline& pipeline, Delivered& delivered) {
    Batch batch;
    const auto polled = pipeline.poll(kHang, batch);
    if (!polled) {
      delivered.errors.push_back(polled.error());
      return true;
    }
    EXPECT_NE(*polled, Loader::Polled::kPending) << "no batch arrives";
    if (*polled != Loader::Polled::kBatch) return false;
    const auto* labels = batch.fields()[1].array.as<std::int64_t>();
    delivered.labels.emplace_back(labels, labels + batch.rows());
    auto& pixels = delivered.pixels.emplace_back();
    for (std::uint64_t row = 0; row < batch.rows(); ++row)
      pixels.push_back(batch.fields()[0].array.as<std::uint8_t>()[row * 48]);
    return true;
  }
};

std::vector<GivenSample> as_given(const std::vector<std::uint64_t>& samples) {
  std::vector<GivenSample> given;
  for (const std::uint64_t sample : samples) given.push_back({sample, sample});
  return given;
}

TEST_F(PipelineTest, GivesTheSameForEveryNumberOfThreads) {
  std::optional<Delivered> first;
  for (const int threads : {1, 2, 3, 8}) {
    const auto delivered = run(*pipeline(std::make_shared<FakeFormat>(300),
                                         {.batch_size = 16, .shuffle = true, .seed = 5, .num_workers = threads}),
                               {.epoch = 2});
    ASSERT_EQ(delivered.labels.size(), 19u);
    if (!first) first = delivered;
    EXPECT_EQ(delivered.labels, first->labels);
    EXPECT_EQ(delivered.pixels, first->pixels);
  }
  for (std::size_t b = 0; b < first->labels.size(); ++b)
    for (std::size_t r = 0; r < first->labels[b].size(); ++r)
      ASSERT_EQ(first->pixels[b][r], first->labels[b][r] % 256) << "image and label of different samples";
}

TEST_F(PipelineTest, GivesTheSameWithOneBatchOfMemory) {
  const LoaderOptions wide{.batch_size = 16, .shuffle = true, .num_workers = 4};
  LoaderOptions tiny = wide;
  tiny.memory_budget = 16 * 48 + 16 * 8 + 64;  // exactly one batch, rounded up
  EXPECT_EQ(run(*pipeline(std::make_shared<FakeFormat>(100), tiny)).labels,
            run(*pipeline(std::make_shared<FakeFormat>(100), wide)).labels);
}

TEST_F(PipelineTest, RunsOneEpochAfterTheOther) {
  const auto pipeline =
      this->pipeline(std::make_shared<FakeFormat>(50), {.batch_size = 8, .shuffle = true, .num_workers = 3});
  std::vector<std::vector<std::vector<std::int64_t>>> epochs;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) epochs.push_back(run(*pipeline, {.epoch = epoch}).labels);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(epochs[3], run(*pipeline, {.epoch = 3}).labels);
}

// Preparing the next epoch does not change the result, even if the prepared epoch is not used.
TEST_F(PipelineTest, PreparesTheNextEpoch) {
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReplace}) {
    for (const std::uint64_t memory : {std::uint64_t{8 * 48 + 8 * 8 + 64}, std::uint64_t{1} << 20}) {
      const LoaderOptions options{.batch_size = 8,
                                  .shuffle = true,
                                  .num_workers = 3,
                                  .memory_budget = memory,
                                  .on_error = on_error,
                                  .world_size = 1};
      const std::set<std::uint64_t> damaged{3, 11, 49};
      const auto format = std::make_shared<FakeFormat>(50, damaged);
      const auto plain = this->pipeline(format, options);
      const auto prepared = this->pipeline(format, options);
      for (const std::uint64_t epoch : {0u, 1u, 2u, 7u, 8u, 8u, 0u, 1u}) {
        const auto expected = run(*plain, {.epoch = epoch});
        const auto got = run(*prepared, {.epoch = epoch}, true);
        EXPECT_EQ(got.labels, expected.labels) << "epoch " << epoch;
        EXPECT_EQ(got.pixels, expected.pixels);
        EXPECT_EQ(got.errors.size(), expected.errors.size());
        EXPECT_EQ(prepared->position().epoch, epoch);
      }
      EXPECT_EQ(prepared->bad_samples().size(), plain->bad_samples().size());
    }
  }
}

TEST_F(PipelineTest, WhatAThreadThrowsEndsThePipelineAndNotTheProcess) {
  const auto format = std::make_shared<FakeFormat>(100);
  format->before_read = [](std::uint64_t index) {
    if (index == 40) throw std::bad_alloc();
  };
  const auto pipeline = this->pipeline(format, {.batch_size = 8, .num_workers = 3});
  const auto delivered = run(*pipeline, {}, false, 1);
  ASSERT_EQ(delivered.errors.size(), 1u);
  EXPECT_EQ(delivered.errors[0].what, "out of memory");
  const auto breaking = std::make_shared<FakeFormat>(100);  // threads of the first may still be running
  breaking->before_read = [](std::uint64_t index) { FEEDLINE_CHECK(index != 40); };
  const auto broken = run(*this->pipeline(breaking, {.batch_size = 8, .num_workers = 3}), {}, false, 1);
  ASSERT_EQ(broken.errors.size(), 1u);
  EXPECT_EQ(broken.errors[0].code, ErrorCode::kInternal);
}

// An epoch that is resumed in the middle differs from the one that was prepared from its start.
TEST_F(PipelineTest, WhatIsPreparedIsAWholeEpoch) {
  const LoaderOptions options{.batch_size = 8, .shuffle = true, .num_workers = 2};
  const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(50), options);
  const auto whole = run(*pipeline, {.epoch = 1});
  using Labels = std::vector<std::vector<std::int64_t>>;
  run(*pipeline, {.epoch = 0}, true);
  EXPECT_EQ(run(*pipeline, {.epoch = 1, .position = 16}).labels, Labels(whole.labels.begin() + 2, whole.labels.end()));
  run(*pipeline, {.epoch = 0}, true);
  Labels without_second = whole.labels;
  without_second.erase(without_second.begin() + 1);
  EXPECT_EQ(run(*pipeline, {.epoch = 1, .delivered = {{8, 16}}}).labels, without_second);
  run(*pipeline, {.epoch = 0}, true);
  EXPECT_EQ(run(*pipeline, {.epoch = 1, .left_out = 2}).labels, Labels(whole.labels.begin(), whole.labels.end() - 1));
}

// The first batches of the next epoch are ready before they are requested.
TEST_F(PipelineTest, AtTheBorderNobodyWaits) {
  auto format = std::make_shared<FakeFormat>(32);
  std::atomic<int> reads = 0;
  format->before_read = [&](std::uint64_t) { ++reads; };
  const LoaderOptions options{.batch_size = 8, .num_workers = 2};
  const auto pipeline = this->pipeline(format, options);
  EXPECT_EQ(run(*pipeline, {.epoch = 0}, true).labels.size(), 4u);
  const int slots = static_cast<int>(pipeline->plan().slots);
  const int ahead = 8 * std::min(slots, 4);
  while (reads < 32 + ahead) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(reads, 32 + ahead);
  ASSERT_TRUE(pipeline->begin({.epoch = 1}, false));
  EXPECT_EQ(reads, 32 + ahead) << "the prepared batches were not used";
  EXPECT_EQ(pipeline->stats().batches, 4u);
}

TEST_F(PipelineTest, SeveralRanksGetTheirBatchesInOrder) {
  auto format = std::make_shared<FakeFormat>(64);
  format->before_read = [](std::uint64_t index) {
    if (index % 16 == 4) std::this_thread::sleep_for(5ms);  // in every other batch of this rank
  };
  const LoaderOptions options{.batch_size = 4, .num_workers = 4, .in_order = false, .rank = 1, .world_size = 2};
  const auto pipeline = this->pipeline(format, options);
  const auto delivered = run(*pipeline);
  for (std::size_t batch = 0; batch < delivered.labels.size(); ++batch)
    EXPECT_EQ(delivered.labels[batch][0], static_cast<std::int64_t>(batch) * 8 + 4);
  EXPECT_TRUE(pipeline->position().delivered.empty());
}

TEST_F(PipelineTest, AnAbandonedEpochLeavesNothingBehind) {
  const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(200), {.batch_size = 8, .num_workers = 3});
  const auto whole = run(*pipeline);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pipeline->begin({.epoch = 9}, false));
    Batch batch;
    if (i % 2 == 0) {
      ASSERT_TRUE(pipeline->poll(kHang, batch));
    }
  }
  EXPECT_EQ(run(*pipeline).labels, whole.labels);
}

TEST_F(PipelineTest, StopsInTheMiddle) {
  for (int i = 0; i < 20; ++i) {
    const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(1000), {.batch_size = 8, .num_workers = 4});
    ASSERT_TRUE(pipeline->begin({}, false));
    Batch batch;
    if (i % 3 > 0) {
      ASSERT_TRUE(pipeline->poll(kHang, batch));
    }
    if (i % 2 == 0) {
      pipeline->stop();
      EXPECT_EQ(pipeline->poll(1ms, batch).error().code, ErrorCode::kCancelled);
    }
  }
}

// Threads stop after their current row, however many rows the batch has left.
TEST_F(PipelineTest, StopsAfterTheRowsInHand) {
  auto format = std::make_shared<FakeFormat>(100'000);
  std::atomic<int> reads = 0;
  std::latch begun(1), stopping(1);
  format->before_read = [&](std::uint64_t) {
    if (reads++ == 20) begun.count_down();
    if (reads > 20) stopping.wait();
  };
  const auto pipeline = this->pipeline(format, {.batch_size = 50'000, .num_workers = 2});
  ASSERT_TRUE(pipeline->begin({}, false));
  begun.wait();
  std::thread stop([&] { pipeline->stop(); });
  Batch batch;
  Result<Loader::Polled> polled;
  do polled = pipeline->poll(1ms, batch);
  while (polled && *polled == Loader::Polled::kPending);
  EXPECT_FALSE(polled) << "stop() did not reach the threads";
  stopping.count_down();
  stop.join();
  EXPECT_LT(reads, 100);
}

// When an epoch is restarted, threads stop filling rows of the previous one.
TEST_F(PipelineTest, AnAbandonedBatchIsLeftAfterTheRowsInHand) {
  auto format = std::make_shared<FakeFormat>(100'000);
  std::atomic<int> reads = 0;
  std::latch begun(1), abandoned(1);
  format->before_read = [&](std::uint64_t) {
    if (reads++ == 20) begun.count_down();
    if (reads > 20) abandoned.wait();
  };
  const auto pipeline = this->pipeline(format, {.batch_size = 50'000, .num_workers = 2});
  ASSERT_TRUE(pipeline->begin({}, false));
  begun.wait();
  ASSERT_TRUE(pipeline->begin({.epoch = 1, .position = 99'990}, false));
  abandoned.count_down();
  Batch batch;
  ASSERT_EQ(*pipeline->poll(kHang, batch), Loader::Polled::kBatch);
  EXPECT_EQ(batch.rows(), 10u);
  EXPECT_LT(reads, 100);
}

TEST_F(PipelineTest, UnorderedDeliversEverySampleOnce) {
  auto format = std::make_shared<FakeFormat>(200);
  std::latch another_came(1);
  std::atomic<int> reads = 0;
  format->before_read = [&](std::uint64_t index) {
    if (index == 0) another_came.wait();
    ++reads;
  };
  const auto pipeline =
      this->pipeline(format, {.batch_size = 8, .num_workers = 3, .memory_budget = 1 << 20, .in_order = false});
  ASSERT_TRUE(pipeline->begin({}, false));
  Delivered delivered;
  EXPECT_TRUE(take(*pipeline, delivered)) << "batch 0 was waited for";
  another_came.count_down();
  while (take(*pipeline, delivered)) continue;
  std::vector<std::int64_t> all;
  for (const auto& batch : delivered.labels) all.insert(all.end(), batch.begin(), batch.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), 200u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
  EXPECT_EQ(reads, 200);
}

// A slow sample delays only its own batch: other threads continue with other rows.
TEST_F(PipelineTest, ASlowSampleDoesNotStopTheOthers) {
  auto format = std::make_shared<FakeFormat>(64);
  std::latch others_done(15);
  format->before_read = [&](std::uint64_t index) {
    if (index == 3)
      others_done.wait();  // hangs forever unless 15 other samples are read in the meantime
    else if (index < 16)
      others_done.count_down();
  };
  EXPECT_EQ(run(*pipeline(format, {.batch_size = 16, .num_workers = 2})).labels.size(), 4u);
}

TEST_F(PipelineTest, HoldsNoMoreThanItsBudget) {
  std::atomic<std::uint64_t> reads = 0;
  auto format = std::make_shared<FakeFormat>(10000);
  format->before_read = [&](std::uint64_t) { ++reads; };
  const std::uint64_t batch_bytes = 8 * 48 + 64;
  const auto pipeline = this->pipeline(format, {.batch_size = 8, .num_workers = 2, .memory_budget = 3 * batch_bytes});
  ASSERT_TRUE(pipeline->begin({}, false));
  while (pipeline->stats().ready_batches < 3) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);  // long enough to overrun if nothing stops it
  EXPECT_EQ(reads, 24u);
  EXPECT_EQ(pipeline->stats().held_bytes, 3 * batch_bytes);
  Batch batch;
  ASSERT_TRUE(pipeline->poll(kHang, batch));
  while (pipeline->stats().ready_batches < 3) std::this_thread::yield();
  EXPECT_EQ(reads, 32u);
  EXPECT_EQ(pipeline->stats().held_bytes_peak, 3 * batch_bytes);
}

TEST_F(PipelineTest, RaiseNamesTheSampleAndGoesOn) {
  const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(32, std::set<std::uint64_t>{9, 12}),
                                       {.batch_size = 8, .num_workers = 3});
  const auto delivered = run(*pipeline);
  EXPECT_EQ(delivered.labels.size(), 3u);
  ASSERT_EQ(delivered.errors.size(), 1u);
  const Error& error = delivered.errors[0];
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.where.dataset, "fake");
  EXPECT_EQ(error.where.shard, "fake-shard");
  EXPECT_EQ(error.where.key, "key-9") << "the first in row order";
  EXPECT_EQ(error.where.record, 9u);
  EXPECT_EQ(error.where.offset, 900u);
  EXPECT_EQ(error.where.stage, "decode");
}

TEST_F(PipelineTest, SkipAndReplaceKeepBatchesFullAndDoNotDependOnThreads) {
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace}) {
    std::optional<Delivered> first;
    std::vector<std::uint64_t> logged;
    for (const int threads : {1, 2, 8}) {
      const auto pipeline =
          this->pipeline(std::make_shared<FakeFormat>(64, std::set<std::uint64_t>{1, 2, 17, 40, 63}),
                         {.batch_size = 8, .shuffle = true, .num_workers = threads, .on_error = on_error});
      const auto delivered = run(*pipeline);
      EXPECT_TRUE(delivered.errors.empty());
      std::size_t rows = 0;
      for (const auto& batch : delivered.labels) rows += batch.size();
      EXPECT_EQ(rows, on_error == OnError::kSkip ? 59u : 64u);
      std::vector<std::uint64_t> bad;
      for (const BadSample& sample : pipeline->bad_samples()) bad.push_back(sample.sample);
      EXPECT_GE(bad.size(), 5u);
      if (!first) first = delivered, logged = bad;
      EXPECT_EQ(delivered.labels, first->labels);
      EXPECT_EQ(bad, logged);
    }
  }
}

TEST_F(PipelineTest, StopsAtTheErrorBudget) {
  const auto format = std::make_shared<FakeFormat>(64, std::set<std::uint64_t>{1, 10, 20, 30});
  const auto within =
      this->pipeline(format, {.batch_size = 8, .num_workers = 2, .on_error = OnError::kSkip, .error_budget = 4});
  EXPECT_TRUE(run(*within).errors.empty());
  const auto over =
      this->pipeline(format, {.batch_size = 8, .num_workers = 2, .on_error = OnError::kSkip, .error_budget = 3});
  const auto delivered = run(*over, {}, false, 1);
  ASSERT_EQ(delivered.errors.size(), 1u);
  EXPECT_NE(delivered.errors[0].what.find("error_budget=3"), std::string::npos);
  EXPECT_EQ(delivered.errors[0].where.key, "key-30");
  EXPECT_EQ(delivered.labels.size(), 3u);
  Batch batch;
  EXPECT_FALSE(over->poll(1ms, batch)) << "and stays stopped";
}

TEST_F(PipelineTest, FollowsTheOrderItIsGiven) {
  const auto pipeline = given_pipeline(std::make_shared<FakeFormat>(20, std::set<std::uint64_t>{7}),
                                       {.batch_size = 4, .num_workers = 3, .on_error = OnError::kSkip});
  ASSERT_TRUE(pipeline->begin({}, false));
  Batch batch;
  EXPECT_EQ(*pipeline->poll(1ms, batch), Loader::Polled::kPending);
  const std::vector<std::vector<std::uint64_t>> given{{3, 3, 1}, {19}, {0, 7, 2, 4}};
  for (const auto& samples : given) ASSERT_TRUE(pipeline->give(as_given(samples)));
  for (const auto& samples : given) {
    ASSERT_EQ(*pipeline->poll(kHang, batch), Loader::Polled::kBatch);
    ASSERT_EQ(batch.rows(), samples.size());
    for (std::size_t row = 0; row < samples.size(); ++row) {
      if (samples[row] != 7) {
        EXPECT_EQ(batch.fields()[1].array.as<std::int64_t>()[row], static_cast<std::int64_t>(samples[row]));
      }
    }
  }
  ASSERT_EQ(pipeline->bad_samples().size(), 1u);
  EXPECT_EQ(pipeline->bad_samples()[0].action, OnError::kReplace) << "the end of a given order is unknown";
  EXPECT_EQ(*pipeline->poll(1ms, batch), Loader::Polled::kPending) << "more may follow";
  ASSERT_TRUE(pipeline->end_giving());
  EXPECT_EQ(*pipeline->poll(1ms, batch), Loader::Polled::kEnd);
  EXPECT_EQ(pipeline->give(as_given({20})).error().code, ErrorCode::kConfig);
  EXPECT_EQ(pipeline->give({}).error().code, ErrorCode::kConfig);
  EXPECT_EQ(pipeline->give(as_given({0, 1, 2, 3, 4})).error().code, ErrorCode::kConfig);
}

TEST_F(PipelineTest, DrawsFromWhatItIsGivenAndNotFromTheSample) {
  const auto jittered =
      make_recipe({"fake", std::make_shared<FakeFormat>(100)},
                  {op::ColorJitter{{0.1, 1.9}, {}, {}, {0, 0}}, op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
  ASSERT_TRUE(jittered);
  const auto plan = plan_given(**jittered, {.batch_size = 64, .num_workers = 2});
  const auto pipeline = std::make_unique<Pipeline>(*jittered, *plan);
  const auto drawn = [&](std::uint64_t first) {
    std::vector<GivenSample> samples;
    for (std::uint64_t draw = first; draw < first + 64; ++draw) samples.push_back({90, draw});
    EXPECT_TRUE(pipeline->give(samples));
    Batch batch;
    EXPECT_EQ(*pipeline->poll(kHang, batch), Loader::Polled::kBatch);
    const auto* pixels = batch.fields()[0].array.as<std::uint8_t>();
    return std::vector<std::uint8_t>(pixels, pixels + 64 * 48);
  };
  ASSERT_TRUE(pipeline->begin({.epoch = 1}, false));
  const auto once = drawn(0), again = drawn(0), others = drawn(64);
  EXPECT_EQ(once, again);
  EXPECT_NE(once, others);
}

TEST_F(PipelineTest, ReportsBadRowsOfTheBatchTheyAreIn) {
  const auto pipeline = given_pipeline(std::make_shared<FakeFormat>(20, std::set<std::uint64_t>{7, 9}),
                                       {.batch_size = 4, .num_workers = 3, .on_error = OnError::kReport});
  ASSERT_TRUE(pipeline->begin({}, false));
  for (const auto& samples : {std::vector<std::uint64_t>{9, 1, 7}, {2, 3}})
    ASSERT_TRUE(pipeline->give(as_given(samples)));
  Batch batch;
  ASSERT_EQ(*pipeline->poll(kHang, batch), Loader::Polled::kBatch);
  ASSERT_EQ(batch.rows(), 3u);
  ASSERT_EQ(batch.bad().size(), 2u);
  EXPECT_EQ(batch.bad()[0].row, 0u);
  EXPECT_EQ(batch.bad()[0].error.where.key, "key-9");
  EXPECT_EQ(batch.bad()[1].row, 2u);
  EXPECT_EQ(batch.fields()[1].array.as<std::int64_t>()[1], 1);
  ASSERT_EQ(*pipeline->poll(kHang, batch), Loader::Polled::kBatch);
  EXPECT_TRUE(batch.bad().empty());
}

// Rows of one number, which are read many at a time; all rows of a read fail if one is damaged, as some formats do.
class FakeArrays final : public format::RowFormat {
 public:
  FakeArrays(std::uint64_t size, std::uint64_t grain, std::set<std::uint64_t> damaged = {})
      : size_(size), grain_(grain), damaged_(std::move(damaged)) {}

  std::string_view name() const override { return "fake arrays"; }
  std::uint64_t size() const override { return size_; }
  const std::vector<format::FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override {
    largest_fill = std::max<std::uint64_t>(largest_fill, samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (damaged_.contains(samples[i])) return data_error("damaged", "fake");
      first_rows[0].as<std::int64_t>()[i] = static_cast<std::int64_t>(samples[i]);
    }
    return samples.size() * sizeof(std::int64_t);
  }
  std::uint64_t grain() const override { return grain_; }
  Where where(std::uint64_t index) const override {
    Where where;
    where.key = "row " + std::to_string(index);
    return where;
  }
  std::uint64_t fingerprint() const override { return size_; }
  Result<Inspection> inspect() const override { return Inspection{}; }

  mutable std::atomic<std::uint64_t> largest_fill = 0;

 private:
  std::uint64_t size_, grain_;
  std::set<std::uint64_t> damaged_;
  std::vector<format::FieldDescription> fields_{
      {"x", format::FieldKind::kArray, {DType::kInt64, {}}},
  };
  std::vector<std::string> classes_;
};

class ArrayPipelineTest : public PipelineTest {
 protected:
  // Returns batches of numbers, followed by the keys of their errors as negative numbers.
  static std::vector<std::vector<std::int64_t>> numbers(const std::shared_ptr<FakeArrays>& format,
                                                        const LoaderOptions& options) {
    auto recipe = make_recipe({"fake", format}, {}, std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe) << recipe.error().message();
    Pipeline pipeline(*recipe, *plan_pipeline(**recipe, options));
    EXPECT_TRUE(pipeline.begin({.epoch = 1}, false));
    std::vector<std::vector<std::int64_t>> batches;
    while (true) {
      Batch batch;
      const auto polled = pipeline.poll(kHang, batch);
      if (!polled) {
        batches.push_back({-std::stoll(polled.error().where.key.substr(4))});
        continue;
      }
      if (*polled != Loader::Polled::kBatch) return batches;
      const auto* values = batch.fields()[0].array.as<std::int64_t>();
      batches.emplace_back(values, values + batch.rows());
      EXPECT_TRUE(std::ranges::equal(batch.samples(), batches.back()));
    }
  }
};

TEST_F(ArrayPipelineTest, ManyRowsAtATimeAreTheSameAsOneByOne) {
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReplace}) {
    const LoaderOptions options{.batch_size = 24, .shuffle = true, .seed = 3, .num_workers = 3, .on_error = on_error};
    const std::set<std::uint64_t> damaged{0, 17, 18, 99, 149};
    const auto many = std::make_shared<FakeArrays>(150, 10, damaged);
    EXPECT_EQ(numbers(many, options), numbers(std::make_shared<FakeArrays>(150, 1, damaged), options));
    EXPECT_EQ(many->largest_fill, 10u);
  }
}

// Sample i has i % 7 + 1 numbers, all equal to i; the padding is -1.
class FakeRagged final : public format::RowFormat {
 public:
  explicit FakeRagged(std::uint64_t size) : size_(size) {}

  std::string_view name() const override { return "fake ragged"; }
  std::uint64_t size() const override { return size_; }
  const std::vector<format::FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override {
    const auto row = static_cast<std::uint64_t>(first_rows[1].spec.shape[0]);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      first_rows[0].data[i] = std::byte{1};
      for (std::uint64_t k = 0; k < row; ++k)
        first_rows[1].as<std::int32_t>()[i * row + k] =
            k < length(samples[i], 1) ? static_cast<std::int32_t>(samples[i]) : -1;
    }
    return 0;
  }
  std::uint64_t length(std::uint64_t index, std::size_t /*field*/) const override { return index % 7 + 1; }
  std::uint64_t longest(std::size_t /*field*/) const override { return 7; }
  std::uint64_t grain() const override { return 3; }
  Where where(std::uint64_t /*index*/) const override { return {}; }
  std::uint64_t fingerprint() const override { return size_; }
  Result<Inspection> inspect() const override { return Inspection{}; }

 private:
  std::uint64_t size_;
  std::vector<format::FieldDescription> fields_{{"flag", format::FieldKind::kArray, {DType::kUint8, {}}},
                                                {"values", format::FieldKind::kArray, {DType::kInt32, {kAnyLength}}}};
  std::vector<std::string> classes_;
};

TEST_F(ArrayPipelineTest, ABatchIsAsLongAsItsLongestSample) {
  for (const int threads : {1, 3}) {
    const auto recipe = *make_recipe({"fake", std::make_shared<FakeRagged>(53)}, {}, std::nullopt, Layout::kNchw);
    const LoaderOptions options{.batch_size = 4, .shuffle = true, .seed = 2, .num_workers = threads};
    Pipeline pipeline(recipe, *plan_pipeline(*recipe, options));
    ASSERT_TRUE(pipeline.begin({}, false));
    std::set<std::int64_t> extents;
    std::multiset<std::uint64_t> seen;
    Batch batch;
    while (*pipeline.poll(kHang, batch) == Loader::Polled::kBatch) {
      std::uint64_t longest = 0;
      for (const std::uint64_t sample : batch.samples()) longest = std::max(longest, sample % 7 + 1);
      const ArrayView values = batch.fields()[1].array;
      ASSERT_EQ(values.spec.shape,
                (Shape{static_cast<std::int64_t>(batch.rows()), static_cast<std::int64_t>(longest)}));
      extents.insert(values.spec.shape[1]);
      for (std::uint64_t row = 0; row < batch.rows(); ++row) {
        const std::uint64_t sample = batch.samples()[row];
        seen.insert(sample);
        for (std::uint64_t k = 0; k < longest; ++k)
          ASSERT_EQ(values.as<std::int32_t>()[row * longest + k],
                    k < sample % 7 + 1 ? static_cast<std::int32_t>(sample) : -1);
      }
    }
    EXPECT_EQ(seen.size(), 53u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 53u);
    EXPECT_GT(extents.size(), 1u);
  }
}

TEST_F(ArrayPipelineTest, TheBudgetIsForTheLongestSamplesAndBadOnesAreNotReplaced) {
  const auto recipe = *make_recipe({"fake", std::make_shared<FakeRagged>(53)}, {}, std::nullopt, Layout::kNchw);
  const auto plan = [&](const LoaderOptions& options) { return plan_pipeline(*recipe, options); };
  EXPECT_EQ(plan({.batch_size = 10})->batch_bytes, 64u + 320);  // flags; 10 rows of 7 numbers, rounded up
  EXPECT_TRUE(plan({.batch_size = 10, .memory_budget = 384}));
  EXPECT_NE(plan({.batch_size = 10, .memory_budget = 383}).error().what.find("one batch needs 384 bytes"),
            std::string::npos);
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace}) {
    const auto refused = plan({.batch_size = 10, .on_error = on_error});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("does not support samples of different lengths"), std::string::npos);
  }
}

TEST_F(ArrayPipelineTest, OperationsAndDtypesAreForImages) {
  const auto format = std::make_shared<FakeArrays>(10, 1);
  EXPECT_EQ(make_recipe({"fake", format}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw).error().code,
            ErrorCode::kConfig);
  EXPECT_EQ(make_recipe({"fake", format}, {}, DType::kFloat16, Layout::kNchw).error().code, ErrorCode::kConfig);
}

TEST_F(PipelineTest, SaysWhereItStalls) {
  auto format = std::make_shared<FakeFormat>(64);
  std::latch hangs(1), release(1);
  format->before_read = [&](std::uint64_t index) {
    if (index != 5) return;
    hangs.count_down();
    release.wait();
  };
  const auto pipeline = this->pipeline(format, {.batch_size = 8, .num_workers = 1, .timeout = 30ms});
  ASSERT_TRUE(pipeline->begin({}, false));
  hangs.wait();  // the thread is at no other row when the timeout expires
  Batch batch;
  Result<Loader::Polled> polled;
  do polled = pipeline->poll(20ms, batch);
  while (polled && *polled == Loader::Polled::kPending);
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().code, ErrorCode::kStalled);
  EXPECT_EQ(polled.error().where.key, "key-5");
  release.count_down();
  do polled = pipeline->poll(kHang, batch);  // which may time out again
  while (!polled && polled.error().code == ErrorCode::kStalled);
  ASSERT_TRUE(polled) << "a stall is not the end: " << polled.error().message();
  EXPECT_EQ(*polled, Loader::Polled::kBatch);
}

TEST_F(PipelineTest, CountsWhatItDid) {
  const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(64), {.batch_size = 8, .num_workers = 3});
  run(*pipeline);
  const LoaderStats stats = pipeline->stats();
  EXPECT_EQ(stats.batches, 8u);
  EXPECT_EQ(stats.samples, 64u);
  std::map<std::string, StageStats> stages;
  for (const StageStats& stage : stats.stages) stages[stage.name] = stage;
  EXPECT_EQ(stages["storage"].items, 64u);
  EXPECT_EQ(stages["decode"].items, 64u);
  EXPECT_EQ(stages["decode"].bytes, 64u * 4 * 4 * 3) << "only the needed region is decoded";
  EXPECT_EQ(stages["transform"].bytes, 64u * 48);
  std::uint64_t histogram = 0;
  for (const std::uint64_t n : stages["decode"].latency_us) histogram += n;
  EXPECT_EQ(histogram, 64u);
}

TEST_F(PipelineTest, AChildAfterForkGetsAnError) {
  const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(64), {.batch_size = 8, .num_workers = 2});
  ASSERT_TRUE(pipeline->begin({}, false));
  const pid_t child = fork();
  if (child == 0) {
    alarm(200);
    Batch batch;
    const bool refused = !pipeline->poll(1ms, batch) && !pipeline->begin({}, false);
    pipeline->stop();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(run(*pipeline).labels.size(), 8u) << "the parent continues";
}

TEST_F(PipelineTest, ThePlanDecidesWhatOptionsLeaveOpen) {
  const auto made = recipe(std::make_shared<FakeFormat>(64));
  const auto alone = plan_pipeline(*made, {.batch_size = 8, .in_order = false, .on_error = OnError::kSkip});
  EXPECT_EQ(alone->on_error, OnError::kSkip);
  EXPECT_EQ(alone->on_error_reason, "");
  EXPECT_FALSE(alone->in_order);
  EXPECT_GE(alone->threads, 1);
  EXPECT_GT(alone->memory_budget, 0u);
  const auto ranks =
      plan_pipeline(*made, {.batch_size = 8, .in_order = false, .on_error = OnError::kSkip, .world_size = 2});
  EXPECT_EQ(ranks->on_error, OnError::kReplace);
  EXPECT_NE(ranks->on_error_reason.find("rank"), std::string::npos);
  EXPECT_TRUE(ranks->in_order);
  const auto given = plan_given(*made, {.batch_size = 8, .num_workers = 2, .on_error = OnError::kSkip});
  EXPECT_EQ(given->on_error, OnError::kReplace);
  EXPECT_NE(given->on_error_reason.find("given"), std::string::npos);
  EXPECT_EQ(given->threads, 2);
  EXPECT_EQ(plan_given(*made, {.batch_size = 1, .on_error = OnError::kReport})->on_error_reason, "");
}

TEST_F(PipelineTest, RefusesWhatCannotWork) {
  const auto made = recipe(std::make_shared<FakeFormat>(64));
  const auto message = [&](const LoaderOptions& options) {
    const auto plan = plan_pipeline(*made, options);
    return plan ? std::string("accepted") : plan.error().message();
  };
  EXPECT_NE(message({}).find("pass batch_size"), std::string::npos);
  EXPECT_NE(message({.batch_size = 0}).find("batch_size"), std::string::npos);
  EXPECT_NE(message({.batch_size = 8, .num_workers = -1}).find("num_workers"), std::string::npos);
  EXPECT_NE(message({.batch_size = 8, .memory_budget = 100}).find("one batch needs 448 bytes"), std::string::npos);
  EXPECT_NE(message({.batch_size = 8, .rank = 2, .world_size = 2}).find("rank"), std::string::npos);
  EXPECT_NE(message({.batch_size = std::uint64_t{1} << 60}).find("batch"), std::string::npos);
  EXPECT_EQ(message({.batch_size = 8}), "accepted");
  EXPECT_NE(plan_given(*made, {.batch_size = 0}).error().what.find("batch_size"), std::string::npos);
  const auto pipeline = this->pipeline(std::make_shared<FakeFormat>(64), {.batch_size = 8, .num_workers = 1});
  ASSERT_TRUE(pipeline->begin({}, false));
  EXPECT_EQ(pipeline->give(as_given({0})).error().code, ErrorCode::kConfig) << "it follows its own plan";
}

}  // namespace
}  // namespace feedline::pipeline
