// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/row_filler.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "device/device.h"
#include "pipeline/fake_format.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kRows = 6, kPixels = 3 * 4 * 4, kSeed = 5, kEpoch = 2;

// A batch of six rows, starting at sample 10, and its filler.
class RowFillerTest : public testing::Test {
 protected:
  void fill(OnError on_error, std::set<std::uint64_t> damaged, std::uint64_t first = 0, std::uint64_t rows = kRows) {
    format_ = std::make_shared<FakeFormat>(100, std::move(damaged));
    format_->before_read = [this](std::uint64_t sample) { read_.push_back(sample); };
    auto recipe = make_recipe({"fake", format_}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    ASSERT_TRUE(recipe) << recipe.error().message();
    slot_ = Slot::make(kRows);
    slot_->rows = kRows;
    slot_->is_assigned = true;
    for (std::uint64_t row = 0; row < kRows; ++row) slot_->samples[row] = slot_->draws[row] = 10 + row;
    slot_->layout = std::make_shared<batch::BatchLayout>((*recipe)->schema, kRows);
    auto lease = memory::Lease::take(device::host_device()->allocator(), slot_->layout->bytes());
    ASSERT_TRUE(lease);
    slot_->lease = *lease;
    std::memset(slot_->lease->data(), 0xEE, slot_->lease->bytes());
    const BadSamplePolicy policy(on_error, 0);
    RowFiller filler(*recipe, policy, kSeed, &counters_, nullptr);
    for (auto& [row, outcome] : filler.fill({slot_, first, rows}, kEpoch, at_row_))
      noted_.push_back({row, std::move(outcome)});
  }
  // Returns the first pixel of a row, which is the number of its sample.
  int pixel(std::uint64_t row) const { return std::to_integer<int>(slot_->lease->data()[row * kPixels]); }

  std::shared_ptr<FakeFormat> format_;
  std::shared_ptr<Slot> slot_;
  telemetry::ThreadCounters counters_;
  std::atomic<std::uint64_t> at_row_{0};
  std::vector<RowFiller::Noted> noted_;
  std::vector<std::uint64_t> read_;
};

TEST_F(RowFillerTest, WritesTheRowsOfTheTicketAndNoOthers) {
  fill(OnError::kRaise, {}, 2, 3);
  EXPECT_TRUE(noted_.empty());
  EXPECT_EQ(at_row_, 4u);
  EXPECT_EQ(read_, (std::vector<std::uint64_t>{12, 13, 14}));
  const std::array<int, kRows> expected{0xEE, 0xEE, 12, 13, 14, 0xEE};
  for (std::uint64_t row = 0; row < kRows; ++row) EXPECT_EQ(pixel(row), expected[row]) << "row " << row;
}

TEST_F(RowFillerTest, ABadSampleIsItsRowsErrorAndTheOthersGoOn) {
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReport}) {
    noted_.clear();
    fill(on_error, {11, 14});
    ASSERT_EQ(noted_.size(), 2u);
    EXPECT_EQ(noted_[0].row, 1u);
    EXPECT_EQ(noted_[1].row, 4u);
    for (const auto& noted : noted_) {
      ASSERT_EQ(noted.outcome.failed.size(), 1u);
      const auto& [row, bad] = noted.outcome.failed.front();
      EXPECT_EQ(row, noted.row);
      EXPECT_EQ(bad.error.where.key, "key-" + std::to_string(10 + noted.row));
      EXPECT_EQ(bad.sample, 10 + noted.row);
      EXPECT_EQ(bad.epoch, kEpoch);
      EXPECT_EQ(noted.outcome.sample, 10 + noted.row);
      EXPECT_TRUE(noted.outcome.replaced.empty());
    }
    EXPECT_EQ(pixel(5), 15);
  }
}

TEST_F(RowFillerTest, AReplacedSampleLogsTheFirstAndIsTheSubstitute) {
  fill(OnError::kReplace, {12});
  ASSERT_EQ(noted_.size(), 1u);
  const auto& [row, outcome] = noted_[0];
  EXPECT_EQ(row, 2u);
  EXPECT_TRUE(outcome.failed.empty());
  ASSERT_EQ(outcome.replaced.size(), 1u);
  const BadSample& bad = outcome.replaced.front().sample;
  EXPECT_EQ(bad.sample, 12u);
  EXPECT_EQ(bad.epoch, kEpoch);
  EXPECT_EQ(bad.action, OnError::kReplace);
  const BadSamplePolicy policy(OnError::kReplace, 0);
  EXPECT_EQ(outcome.sample, policy.substitute({kSeed, kEpoch, 12}, 100, 0));
  EXPECT_EQ(pixel(2), static_cast<int>(outcome.sample));
}

TEST_F(RowFillerTest, WhereEverySubstituteIsBadTheRowFailsInTheEnd) {
  std::set<std::uint64_t> all;
  for (std::uint64_t sample = 0; sample < 100; ++sample) all.insert(sample);
  fill(OnError::kReplace, std::move(all), 3, 1);
  ASSERT_EQ(noted_.size(), 1u);
  EXPECT_EQ(noted_[0].outcome.failed.size(), 1u);
  EXPECT_EQ(noted_[0].outcome.replaced.size(), 1u) << "substitutes are logged at their position in the plan";
  EXPECT_EQ(read_.size(), 33u);
}

TEST_F(RowFillerTest, ImagesGoTwoByTwoOnlyWhereEveryThreadGetsTwo) {
  auto png =
      make_recipe({"fake", std::make_shared<FakeFormat>(100)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
  ASSERT_TRUE(png);
  EXPECT_EQ(RowFiller::grain(**png, 16, 8), 2u);
  EXPECT_EQ(RowFiller::grain(**png, 15, 8), 1u);
}

}  // namespace
}  // namespace feedline::pipeline
