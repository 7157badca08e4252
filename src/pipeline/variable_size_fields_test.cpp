// SPDX-License-Identifier: Apache-2.0

// Tests lists and padded fields in the whole pipeline except for filling rows: the result does not depend on threads,
// bad samples are handled as for dense fields, and memory stays within the budget.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/variable_size_fixture.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

LoaderOptions options_of(int threads, OnError on_error = OnError::kRaise, bool in_order = true) {
  return {.batch_size = 8,
          .shuffle = true,
          .seed = 3,
          .num_workers = threads,
          .memory_budget = 1 << 20,
          .in_order = in_order,
          .on_error = on_error};
}

std::vector<std::string> epoch_of(const LoaderOptions& options, const std::set<std::uint64_t>& bad = {},
                                  std::shared_ptr<device::Device> device = std::make_shared<FakeDevice>(),
                                  bool with_dense = true) {
  VariableSizeSamples samples;
  samples.bad = bad;
  VariableSizeRun run(VariableSizeSamples::recipe(203, with_dense), options, samples, std::move(device));
  return run.epoch();
}

TEST(VariableSizeFields, AreTheSameBytesWhateverTheThreads) {
  const auto one = epoch_of(options_of(1));
  ASSERT_EQ(one.size(), 26u);
  for (int threads = 2; threads <= 8; ++threads) EXPECT_EQ(epoch_of(options_of(threads)), one) << threads << " threads";
}

// Batches without dense fields have no memory other than that of their variable-size fields.
TEST(VariableSizeFields, MayBeAllThereIs) {
  const auto one = epoch_of(options_of(1), {}, std::make_shared<FakeDevice>(), false);
  ASSERT_EQ(one.size(), 26u);
  EXPECT_EQ(epoch_of(options_of(4), {}, std::make_shared<FakeDevice>(), false), one);
}

TEST(VariableSizeFields, ABatchHoldsWhatItsSamplesAre) {
  VariableSizeRun run(VariableSizeSamples::recipe(203), options_of(3), {});
  run.begin();
  const auto batch = run.next();
  ASSERT_TRUE(batch && *batch);
  const auto fields = (*batch)->fields();
  ASSERT_EQ(fields.size(), 5u);
  const BatchField &text = fields[2], &boxes = fields[3], &picture = fields[4];
  std::int64_t longest = 0;
  for (std::size_t row = 0; row < 8; ++row) {
    const std::uint64_t sample = (*batch)->samples()[row];
    const std::string words(reinterpret_cast<const char*>(text.buffer.data()) + text.offsets[row],
                            static_cast<std::size_t>(text.offsets[row + 1] - text.offsets[row]));
    EXPECT_EQ(std::ranges::count(words, ' '), static_cast<std::ptrdiff_t>(sample * 31 % 17));
    EXPECT_EQ(boxes.absent[row], sample % 7 == 0);
    const std::int64_t length = boxes.lengths.as<std::int64_t>()[row];
    EXPECT_EQ(length, sample % 7 == 0 ? 0 : static_cast<std::int64_t>(sample % 6));
    longest = std::max(longest, length);
    const auto side = static_cast<std::int64_t>(1 + sample % 5);
    EXPECT_EQ(picture.shapes[row], (Shape{side, side + 1, 3}));
    EXPECT_EQ(picture.buffer[static_cast<std::size_t>(picture.offsets[row])], static_cast<std::byte>(sample % 256));
  }
  EXPECT_EQ(boxes.array.spec.shape, (Shape{8, longest, 4}));
}

TEST(VariableSizeFields, BadSamplesAreSkippedReplacedAndReportedAsWithDenseOnes) {
  const std::set<std::uint64_t> bad{3, 17, 18, 100, 101, 150, 202};
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace, OnError::kReport, OnError::kRaise}) {
    const auto one = epoch_of(options_of(1, on_error), bad);
    EXPECT_EQ(one.size(), on_error == OnError::kSkip ? 25u : 26u);
    for (const int threads : {2, 5, 8}) EXPECT_EQ(epoch_of(options_of(threads, on_error), bad), one) << threads;
  }
}

TEST(VariableSizeFields, AReportedRowIsEmptyThoughHalfOfItWasWritten) {
  VariableSizeSamples samples;
  for (std::uint64_t sample = 0; sample < 203; sample += 2) samples.bad.insert(sample);
  VariableSizeRun run(VariableSizeSamples::recipe(203), options_of(4, OnError::kReport), samples);
  run.begin();
  std::size_t reported = 0;
  for (auto batch = run.next(); batch && *batch; batch = run.next())
    for (const BadRow& bad : (*batch)->bad()) {
      const BatchField& text = (*batch)->fields()[2];
      EXPECT_EQ(text.offsets[bad.row], text.offsets[bad.row + 1]);
      EXPECT_FALSE(text.absent[bad.row]);
      ++reported;
    }
  EXPECT_EQ(reported, 102u);
}

TEST(VariableSizeFields, OutOfOrderComeTheSameBatches) {
  const std::set<std::uint64_t> bad{3, 17, 18, 100};
  for (const OnError on_error : {OnError::kReplace, OnError::kReport, OnError::kSkip}) {
    auto ordered = epoch_of(options_of(1, on_error), bad);
    auto loose = epoch_of(options_of(6, on_error, false), bad);
    std::ranges::sort(ordered);
    std::ranges::sort(loose);
    EXPECT_EQ(loose, ordered);
  }
}

TEST(VariableSizeFields, EpochsGoOnAndMayBeAbandoned) {
  VariableSizeRun run(VariableSizeSamples::recipe(203), options_of(4), {});
  const auto second = epoch_of(options_of(1));
  run.begin(0, true);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(run.next());
  run.begin(7, true);
  EXPECT_TRUE(run.next());
  EXPECT_EQ(run.epoch(0), second);
}

// A batch that the user holds does not change while items and blocks are reused.
TEST(VariableSizeFields, WhatIsHeldIsNeverReused) {
  VariableSizeRun run(VariableSizeSamples::recipe(203), options_of(4), {});
  run.begin();
  std::vector<Batch> taken;
  std::vector<std::string> then;
  for (auto batch = run.next(); batch && *batch; batch = run.next()) {
    then.push_back(contents_of(**batch));
    taken.push_back(std::move(**batch));
  }
  EXPECT_EQ(taken.size(), 26u);
  for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(contents_of(taken[i]), then[i]);
}

// Two batches of eight rows with 20 KB of text, and a budget for two such batches. The size of a batch is unknown until
// the first batches have been measured.
TEST(VariableSizeFields, NoMoreAreHeldThanTheBudgetHasRoomFor) {
  VariableSizeSamples samples;
  samples.words = [](std::uint64_t) { return std::uint64_t{5000}; };
  LoaderOptions options = options_of(4);
  options.memory_budget = 800 << 10;
  VariableSizeRun run(VariableSizeSamples::recipe(203), options, samples);
  EXPECT_GT(run.plan().slots, 10u) << "the assumed size";
  run.begin();
  std::uint64_t most = 0;
  for (int batches = 0; batches < 20; ++batches) {
    ASSERT_TRUE(run.next());
    std::this_thread::sleep_for(2ms);  // as many as allowed are made
    if (batches >= 12) most = std::max(most, run.stats().held_bytes);
  }
  EXPECT_GT(most, 100u << 10) << "the text is counted";
  EXPECT_GE(run.stats().held_bytes_peak, most);
  EXPECT_LE(run.stats().held_bytes_peak, options.memory_budget);
}

TEST(VariableSizeFields, WhatIsComposedIsHeldUntilItIsDelivered) {
  LoaderOptions options = options_of(1);
  options.memory_budget = 8 << 20;
  VariableSizeRun run(VariableSizeSamples::recipe(203), options, {});
  run.begin();
  const auto deadline = std::chrono::steady_clock::now() + 100s;
  while (run.stats().ready_batches < 26 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  const std::uint64_t held = run.stats().held_bytes;
  std::uint64_t variable = 0, batches = 0;
  for (auto batch = run.next(); batch && *batch; batch = run.next(), ++batches)
    for (const BatchField& field : (*batch)->fields())
      variable += field.buffer.size() + (field.form == BatchForm::kPadded ? field.array.spec.bytes() : 0);
  ASSERT_EQ(batches, 26u);
  EXPECT_GE(held, run.stats().held_bytes + 26 * run.plan().batch_bytes + variable);
  EXPECT_LT(run.stats().held_bytes, held / 2) << "rows that the next epoch will reuse";
}

// While the size of a batch is unknown, two batches are started, even if more seem to fit.
TEST(VariableSizeFields, OfUnknownSizeTwoBatchesAreBegun) {
  std::atomic<int> inside = 0;
  std::atomic<bool> goes_on = false;
  VariableSizeSamples samples;
  samples.before_row = [&](std::uint64_t) {
    ++inside;
    while (!goes_on) std::this_thread::yield();
  };
  VariableSizeRun run(VariableSizeSamples::recipe(203), options_of(20), samples);
  EXPECT_GT(run.plan().slots, 10u);
  run.begin();
  while (inside < 16) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);  // long enough for most threads to take another row
  EXPECT_EQ(inside, 16);
  goes_on = true;
  EXPECT_EQ(run.epoch(), epoch_of(options_of(1)));
}

TEST(VariableSizeFields, WhatFormatsKnowOfTheirRowsIsPlannedFor) {
  auto recipe = std::make_shared<Recipe>(*VariableSizeSamples::recipe(203));
  for (FieldSpec& field : recipe->schema)
    if (field.has_variable_size()) field.usual_bytes = 50'000;
  LoaderOptions options = options_of(2);
  options.memory_budget = 10 << 20;
  const auto plan = plan_pipeline(*recipe, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->variable_bytes, 8u * 3 * 50'000 * 2);
  EXPECT_EQ(plan->slots, (10u << 20) / (plan->batch_bytes + plan->variable_bytes));
  options.memory_budget = 1 << 20;
  const auto refused = plan_pipeline(*recipe, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("about"), std::string::npos) << refused.error().what;
}

TEST(VariableSizeFields, WithoutMemoryForThemABatchIsAnErrorAtItsPlace) {
  const auto device = std::make_shared<FakeDevice>();
  device->variable_memory->blocks = 0;
  VariableSizeRun run(VariableSizeSamples::recipe(203), options_of(3), {}, device);
  EXPECT_EQ(run.epoch(), std::vector<std::string>(26, "no memory for a batch"));
  EXPECT_EQ(run.stats().batches, 0u);
  device->variable_memory->blocks = 1000;
  EXPECT_EQ(run.epoch(), epoch_of(options_of(1))) << "memory is available again";
}

}  // namespace
}  // namespace feedline::pipeline
