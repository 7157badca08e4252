// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_order.h"

#include <gtest/gtest.h>

#include "pipeline/fake_format.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

using Samples = std::vector<std::uint64_t>;
using PlanPointer = std::shared_ptr<const plan::Plan>;

constexpr std::uint64_t kSlack = 2;

// Epochs of ten samples, in batches of four, four and two.
class FetchOrderTest : public testing::Test {
 protected:
  static PipelinePlan planned(bool is_given) {
    const auto recipe =
        make_recipe({"fake", std::make_shared<FakeFormat>(10)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    auto plan = is_given ? plan_given(**recipe, {.batch_size = 4, .num_workers = 1})
                         : plan_pipeline(**recipe, {.batch_size = 4, .shuffle = true, .num_workers = 1});
    EXPECT_TRUE(plan);
    return *plan;
  }
  PlanPointer epoch(std::uint64_t number) const {
    return std::make_shared<const plan::Plan>(whole_epoch(plan_, number));
  }
  static Samples samples_of(const plan::Plan& plan, std::uint64_t from) {
    Samples samples;
    for (std::uint64_t position = from; position < 10; ++position) samples.push_back(plan.at(position).sample);
    return samples;
  }
  void give(const Samples& samples, std::uint64_t oldest) {
    std::vector<GivenSample> batch;
    for (const std::uint64_t sample : samples) batch.push_back({sample, 100 + sample});
    given_.give(std::move(batch), oldest);
  }
  static Samples rest_of(FetchOrder& order) {
    Samples samples;
    while (const auto sample = order.next()) samples.push_back(*sample);
    return samples;
  }

  const PipelinePlan plan_ = planned(false);
  const PipelinePlan given_plan_ = planned(true);
  FetchOrder order_{plan_, kSlack};
  FetchOrder given_{given_plan_, kSlack};
  FetchOrder::Past past_;
};

TEST_F(FetchOrderTest, FollowsThePlanBehindWhatWasMissed) {
  EXPECT_FALSE(order_.begin(false, past_));
  EXPECT_EQ(order_.next(), std::nullopt) << "no sample was needed yet";
  const PlanPointer plan = epoch(0);
  EXPECT_TRUE(order_.missed({0, &plan, 0, 2}, past_));
  EXPECT_EQ(rest_of(order_), samples_of(*plan, 3));
  EXPECT_FALSE(order_.needs_next_epoch()) << "no epoch is likely to follow";
  const PlanPointer other = epoch(5);
  EXPECT_TRUE(order_.missed({5, &other, 1, 3}, past_));
  EXPECT_EQ(past_.plan, plan);
  EXPECT_EQ(rest_of(order_), samples_of(*other, 8));
  order_.forget(past_);
  EXPECT_EQ(past_.plan, other);
  EXPECT_EQ(order_.next(), std::nullopt);
}

TEST_F(FetchOrderTest, GoesOnWithTheEpochThatIsLikelyToFollow) {
  order_.begin(true, past_);
  const PlanPointer plan = epoch(3), next = epoch(4);
  order_.missed({3, &plan, 2, 0}, past_);
  EXPECT_FALSE(order_.needs_next_epoch());
  EXPECT_EQ(rest_of(order_), samples_of(*plan, 9));
  ASSERT_TRUE(order_.needs_next_epoch());
  const auto ended = order_.ended();
  EXPECT_EQ(ended.epoch, 3u);
  FetchOrder::PlannedEpoch following{4, next};
  order_.follow(ended, following);
  EXPECT_EQ(following.plan, plan) << "the caller destroys the plan that is no longer followed";
  EXPECT_EQ(rest_of(order_), samples_of(*next, 0));
  EXPECT_FALSE(order_.needs_next_epoch()) << "at most one epoch ahead";
  order_.begin(true, past_);
  EXPECT_TRUE(order_.needs_next_epoch()) << "the prepared epoch has begun";
  FetchOrder::PlannedEpoch late{4, next};
  order_.follow(ended, late);
  EXPECT_EQ(late.plan, next) << "the position has changed";
}

TEST_F(FetchOrderTest, AFewMissesJustBeforeItLeaveItWhereItIs) {
  const PlanPointer plan = epoch(0);
  order_.missed({0, &plan, 0, 0}, past_);
  for (int i = 0; i < 7; ++i) order_.next();  // until (2, 0)
  EXPECT_FALSE(order_.missed({0, &plan, 0, 1}, past_));
  EXPECT_FALSE(order_.missed({0, &plan, 0, 2}, past_));
  order_.found();
  EXPECT_FALSE(order_.missed({0, &plan, 0, 3}, past_));
  EXPECT_FALSE(order_.missed({0, &plan, 1, 0}, past_));
  EXPECT_FALSE(order_.missed({0, nullptr, 1, 0}, past_)) << "a row in no order has no effect";
  EXPECT_TRUE(order_.missed({0, &plan, 1, 1}, past_)) << "the third in a row";
  EXPECT_EQ(rest_of(order_), samples_of(*plan, 6));
  EXPECT_TRUE(order_.missed({0, &plan, 9, 0}, past_)) << "earlier samples are not needed any more";
}

TEST_F(FetchOrderTest, GoesOnIfARowOfThePreviousEpochIsMissed) {
  order_.begin(true, past_);
  const PlanPointer plan = epoch(3);
  order_.missed({3, &plan, 0, 0}, past_);
  rest_of(order_);
  FetchOrder::PlannedEpoch following{4, epoch(4)};
  const PlanPointer next = following.plan;
  order_.follow(order_.ended(), following);
  ASSERT_EQ(order_.next(), samples_of(*next, 0)[0]);
  EXPECT_FALSE(order_.missed({3, &plan, 1, 1}, past_));
  EXPECT_EQ(order_.next(), samples_of(*next, 1)[0]);
  EXPECT_TRUE(order_.missed({2, &plan, 1, 1}, past_)) << "another epoch";
}

TEST_F(FetchOrderTest, KnowsTheDrawsOfGivenSamples) {
  given_.begin(true, past_, 7);
  give({3, 4}, 0);
  for (const std::uint64_t sample : {3, 4}) {
    const auto row = given_.next_row();
    ASSERT_TRUE(row);
    EXPECT_EQ(row->sample, sample);
    EXPECT_EQ(row->draw, 100 + sample);
    EXPECT_EQ(row->epoch, 7u);
  }
}

TEST_F(FetchOrderTest, FollowsWhatIsGivenAsFarAsItIs) {
  EXPECT_TRUE(given_.begin(true, past_)) << "the fetched samples belong to an obsolete order";
  EXPECT_EQ(given_.next(), std::nullopt);
  give({7, 7, 3}, 0);
  EXPECT_EQ(rest_of(given_), (Samples{7, 7, 3}));
  give({5}, 0);
  give({6, 1}, 1);
  EXPECT_EQ(given_.next(), 5u);
  give({9}, 3);  // the batches 0 to 2 are delivered
  EXPECT_EQ(rest_of(given_), Samples{9});
  EXPECT_FALSE(given_.needs_next_epoch());
  EXPECT_TRUE(given_.begin(true, past_));
  EXPECT_EQ(past_.given.size(), 1u);
  give({2}, 0);
  EXPECT_EQ(rest_of(given_), Samples{2});
  EXPECT_TRUE(given_.missed({0, nullptr, 4, 0, true}, past_));
  give({4, 8}, 0);
  EXPECT_EQ(rest_of(given_), Samples{}) << "it is in batch 4, and batch 1 was given";
}

}  // namespace
}  // namespace feedline::pipeline
