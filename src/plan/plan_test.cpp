// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace feedline::plan {
namespace {

struct Case {
  std::uint64_t size = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  bool shuffle = false;
  PlanConfig plan = {};
  std::uint64_t repeat = 1;
};

Plan plan_of(const Case& c) {
  OrderConfig order;
  order.size = c.size;
  order.seed = c.seed;
  order.shuffle = c.shuffle;
  order.repeat = c.repeat;
  return {make_order(order, c.epoch), c.plan};
}

std::vector<std::uint64_t> samples_of(const Case& c) {
  const Plan plan = plan_of(c);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < plan.positions(); ++i) samples.push_back(plan.at(i).sample);
  return samples;
}

std::map<std::uint64_t, int> count_over_ranks(Case c) {
  std::map<std::uint64_t, int> count;
  for (c.plan.rank = 0; c.plan.rank < c.plan.world_size; ++c.plan.rank)
    for (const std::uint64_t sample : samples_of(c)) ++count[sample];
  return count;
}

TEST(Plan, IsTheIdentityWithoutShuffle) {
  EXPECT_EQ(samples_of({.size = 5, .plan = {.batch_rows = 2}}), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(Plan, AnotherSeedOrEpochIsAnotherOrder) {
  const Case base{.size = 1000, .seed = 1, .epoch = 0, .shuffle = true, .plan = {.batch_rows = 7}};
  Case seed = base, epoch = base;
  seed.seed = 2;
  epoch.epoch = 1;
  EXPECT_EQ(samples_of(base), samples_of(base));
  EXPECT_NE(samples_of(base), samples_of(seed));
  EXPECT_NE(samples_of(base), samples_of(epoch));
  EXPECT_NE(samples_of(seed), samples_of(epoch));
}

TEST(Plan, CountsBatches) {
  EXPECT_EQ(plan_of({.size = 10, .plan = {.batch_rows = 4}}).batches(), 3u);
  EXPECT_EQ(plan_of({.size = 10, .plan = {.batch_rows = 4, .drop_last = true}}).batches(), 2u);
  EXPECT_EQ(plan_of({.size = 8, .plan = {.batch_rows = 4, .drop_last = true}}).batches(), 2u);
  EXPECT_EQ(plan_of({.size = 3, .plan = {.batch_rows = 4, .drop_last = true}}).batches(), 0u);
}

// 23 samples in global batches of 12 leave a remainder of 11. With padding, the remainder would make full batches of 3
// on four ranks, but not full batches on two ranks.
TEST(Plan, DropLastDoesNotDependOnTheWorldSize) {
  for (const Uneven uneven : {Uneven::kPad, Uneven::kDrop, Uneven::kExact}) {
    for (const std::uint64_t ranks : {1u, 2u, 3u, 4u}) {
      const PlanConfig plan{
          .batch_rows = 12 / ranks, .rank = 0, .world_size = ranks, .drop_last = true, .uneven = uneven};
      EXPECT_EQ(plan_of({.size = 23, .plan = plan}).batches(), 1u) << ranks;
    }
  }
}

// The set of samples in a global batch does not depend on the number of ranks.
TEST(Plan, GlobalBatchesDoNotDependOnTheWorldSize) {
  const auto global_batch = [](std::uint64_t ranks, std::uint64_t batch_rows, std::uint64_t index) {
    std::vector<std::uint64_t> samples;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const Plan plan = plan_of({.size = 103,
                                 .seed = 5,
                                 .shuffle = true,
                                 .plan = {.batch_rows = batch_rows, .rank = rank, .world_size = ranks}});
      for (std::uint64_t row = 0; row < batch_rows; ++row) samples.push_back(plan.at(index * batch_rows + row).sample);
    }
    std::ranges::sort(samples);
    return samples;
  };
  for (std::uint64_t index = 0; index < 8; ++index) {
    EXPECT_EQ(global_batch(1, 12, index), global_batch(4, 3, index));
    EXPECT_EQ(global_batch(1, 12, index), global_batch(3, 4, index));
  }
}

std::vector<std::uint64_t> samples_of_all_ranks(Case c, std::uint64_t batch) {
  std::vector<std::uint64_t> samples;
  for (c.plan.rank = 0; c.plan.rank < c.plan.world_size; ++c.plan.rank) {
    const Plan plan = plan_of(c);
    for (std::uint64_t row = 0; row < plan.rows(batch); ++row)
      samples.push_back(plan.at(batch * c.plan.batch_rows + row).sample);
  }
  return samples;
}

// A plan that begins at any global batch equals the rest of the whole plan, for any number of ranks that results in the
// same global batch size.
TEST(Plan, BegunAnywhereItIsTheRest) {
  for (const Uneven uneven : {Uneven::kPad, Uneven::kDrop, Uneven::kExact}) {
    for (const std::uint64_t size : {23u, 24u, 29u}) {
      const Case whole{
          .size = size, .seed = 3, .shuffle = true, .plan = {.batch_rows = 6, .world_size = 1, .uneven = uneven}};
      const std::uint64_t batches = plan_of(whole).batches();
      for (std::uint64_t begun = 0; begun <= batches; ++begun) {
        for (const std::uint64_t ranks : {1u, 2u, 3u}) {
          Case rest = whole;
          rest.plan.batch_rows = 6 / ranks;
          rest.plan.world_size = ranks;
          rest.plan.begin = plan_of(whole).begin_of(begun);
          Case same_ranks = rest;
          same_ranks.plan.begin = 0;
          for (std::uint64_t batch = begun; batch < batches; ++batch)
            EXPECT_EQ(samples_of_all_ranks(rest, batch - begun), samples_of_all_ranks(same_ranks, batch))
                << size << " samples, batch " << batch << " of a plan begun at " << begun << ", " << ranks << " ranks";
        }
      }
    }
  }
}

// Each remaining sample is delivered once, whatever was delivered before and whatever the new batch size.
TEST(Plan, CutsWhatIsLeft) {
  const Case whole{.size = 40, .seed = 3, .shuffle = true, .plan = {.batch_rows = 4}};
  const Plan plan = plan_of(whole);
  std::vector<Positions> delivered;
  for (const std::uint64_t batch : {3u, 5u, 6u}) plan.add_positions(batch, delivered);
  for (const std::uint64_t batch_rows : {4u, 3u, 7u, 40u}) {
    for (const std::uint64_t ranks : {1u, 3u}) {
      Case rest = whole;
      rest.plan = {batch_rows, 0, ranks, false, Uneven::kExact, plan.begin_of(1), tidied(delivered, plan.begin_of(1)),
                   5};
      auto count = count_over_ranks(rest);
      EXPECT_EQ(count.size(), 40u - 4 - 12 - 5);
      for (const std::uint64_t batch : {0u, 3u, 5u, 6u})
        for (std::uint64_t row = 0; row < 4; ++row) EXPECT_FALSE(count.contains(plan.at(batch * 4 + row).sample));
      for (std::uint64_t last = 35; last < 40; ++last) EXPECT_FALSE(count.contains(plan.at(last).sample));
      for (const auto& [sample, times] : count) EXPECT_EQ(times, 1) << sample;
    }
  }
}

// After a plan with gaps, add_positions() returns positions of the original order.
TEST(Plan, ResumesOfResumesSpeakOfTheSameOrder) {
  const Case whole{.size = 30, .plan = {.batch_rows = 5}};
  Case rest = whole;
  rest.plan.batch_rows = 4;
  rest.plan.begin = 5;
  rest.plan.delivered = {{7, 9}, {12, 20}};  // left: 5 6 9 10 | 11 20 21 22 | 23 24 25 26 | 27 28 29
  const Plan plan = plan_of(rest);
  EXPECT_EQ(plan.batches(), 4u);
  std::vector<Positions> spans;
  plan.add_positions(1, spans);
  EXPECT_EQ(spans, (std::vector<Positions>{{11, 12}, {20, 23}}));
  EXPECT_EQ(plan.begin_of(1), 11u);
  EXPECT_EQ(plan.begin_of(4), 30u);
  EXPECT_EQ(tidied({{20, 23}, {7, 9}, {11, 12}, {12, 20}}, 9), (std::vector<Positions>{{11, 23}}));
}

TEST(Plan, ManyAtATimeAreTheSameAsOneByOne) {
  for (const std::uint64_t ranks : {1u, 3u}) {
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const Case c{.size = 30,
                   .seed = 2,
                   .shuffle = true,
                   .plan = {.batch_rows = 4, .rank = rank, .world_size = ranks, .begin = 5, .delivered = {{7, 9}}}};
      const Plan plan = plan_of(c);
      for (std::uint64_t batch = 0; batch < plan.batches(); ++batch) {
        const std::uint64_t rows = plan.rows(batch);
        std::vector<std::uint64_t> samples(rows), draws(rows);
        plan.place(batch * 4, samples, draws);
        for (std::uint64_t row = 0; row < rows; ++row) {
          EXPECT_EQ(samples[row], plan.at(batch * 4 + row).sample);
          EXPECT_EQ(draws[row], plan.at(batch * 4 + row).draw);
        }
      }
    }
  }
}

// Position p of an order with repetitions equals position p / repeat of the order without repetitions, with a different
// draw.
TEST(Plan, RepeatsEverySampleWithOtherDraws) {
  const Case once{.size = 100, .seed = 4, .epoch = 2, .shuffle = true, .plan = {.batch_rows = 8}};
  Case thrice = once;
  thrice.repeat = 3;
  const Plan plan = plan_of(thrice), plain = plan_of(once);
  EXPECT_EQ(plan.positions(), 100u);
  std::set<std::pair<std::uint64_t, std::uint64_t>> draws;
  for (std::uint64_t position = 0; position < 100; ++position) {
    const OrderedSample placed = plan.at(position), first = plain.at(position / 3);
    EXPECT_EQ(placed.sample, first.sample);
    EXPECT_EQ(placed.draw == first.draw, position % 3 == 0) << "the first time it is drawn like without repeats";
    draws.insert({placed.sample, placed.draw});
  }
  EXPECT_EQ(draws.size(), 100u);
}

// Neighbours in the order go to different ranks, as in torchvision's RASampler: rank r has the positions r, r + ranks,
// ...
TEST(Plan, InterleavedRanksTakeTurnsAtPositions) {
  for (const Uneven uneven : {Uneven::kPad, Uneven::kDrop, Uneven::kExact}) {
    for (const std::uint64_t ranks : {1u, 2u, 3u}) {
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        Case c{.size = 101, .seed = 4, .shuffle = true, .repeat = 3};
        c.plan = {.batch_rows = 6, .rank = rank, .world_size = ranks, .uneven = uneven, .interleaved = true};
        const Plan plan = plan_of(c);
        Case whole = c;
        whole.plan = {.batch_rows = 101};
        const Plan order = plan_of(whole);
        std::vector<std::uint64_t> samples(plan.positions()), draws(plan.positions());
        for (std::uint64_t b = 0; b < plan.batches(); ++b)
          plan.place(b * 6, std::span(samples).subspan(b * 6, plan.rows(b)),
                     std::span(draws).subspan(b * 6, plan.rows(b)));
        for (std::uint64_t i = 0; i < plan.positions(); ++i) {
          const OrderedSample expected = order.at((i * ranks + rank) % 101);
          ASSERT_EQ(plan.at(i), expected) << ranks << " ranks, position " << i << " of " << rank;
          ASSERT_EQ((OrderedSample{samples[i], draws[i]}), expected);
        }
      }
    }
  }
}

TEST(Plan, InterleavedGlobalBatchesAreTheSameOnAnyNumberOfRanks) {
  const auto batches = [](std::uint64_t ranks, std::uint64_t begin) {
    std::vector<std::vector<std::uint64_t>> all;
    Case c{.size = 101, .seed = 4, .shuffle = true, .repeat = 2};
    c.plan = {.batch_rows = 12 / ranks, .world_size = ranks, .uneven = Uneven::kExact};
    c.plan.begin = begin, c.plan.interleaved = true;
    for (std::uint64_t batch = 0; batch < plan_of(c).batches(); ++batch) {
      all.push_back(samples_of_all_ranks(c, batch));
      std::ranges::sort(all.back());
    }
    return all;
  };
  const auto whole = batches(1, 0);
  for (const std::uint64_t ranks : {2u, 3u, 4u}) {
    EXPECT_EQ(batches(ranks, 0), whole);
    const std::vector rest(whole.begin() + 3, whole.end());
    EXPECT_EQ(batches(ranks, 36), rest) << "resumed on " << ranks;
  }
}

TEST(Plan, TellsTheRowsOfEveryRank) {
  const Plan plan = plan_of({.size = 11, .plan = {.batch_rows = 2, .world_size = 4, .uneven = Uneven::kExact}});
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(plan.rows(0, rank), 2u);
    EXPECT_EQ(plan.rows(1, rank), rank < 3 ? 1u : 0u);
    EXPECT_EQ(plan.rows(2, rank), 0u);
    EXPECT_EQ(plan.batches(rank), rank < 3 ? 2u : 1u);
  }
}

class PlanOverRanks : public testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  Case config(Uneven uneven) const {
    const auto [size, batch_rows, ranks] = GetParam();
    Case c{.size = static_cast<std::uint64_t>(size), .seed = 9, .shuffle = true};
    c.plan.batch_rows = static_cast<std::uint64_t>(batch_rows);
    c.plan.world_size = static_cast<std::uint64_t>(ranks);
    c.plan.uneven = uneven;
    return c;
  }
  std::vector<std::uint64_t> positions_per_rank(Case c) const {
    std::vector<std::uint64_t> positions;
    for (c.plan.rank = 0; c.plan.rank < c.plan.world_size; ++c.plan.rank) positions.push_back(plan_of(c).positions());
    return positions;
  }
};

TEST_P(PlanOverRanks, ExactSeesEverySampleOnce) {
  const auto count = count_over_ranks(config(Uneven::kExact));
  EXPECT_EQ(count.size(), config(Uneven::kExact).size);
  for (const auto& [sample, times] : count) ASSERT_EQ(times, 1) << sample;
}

TEST_P(PlanOverRanks, PadGivesEveryRankTheSameAndRepeatsTheFewestSamples) {
  const Case config = this->config(Uneven::kPad);
  const auto positions = positions_per_rank(config);
  EXPECT_EQ(std::ranges::count(positions, positions[0]), std::ssize(positions));
  const auto count = count_over_ranks(config);
  EXPECT_EQ(count.size(), config.size);
  const std::uint64_t ranks = config.plan.world_size;
  EXPECT_EQ(positions[0] * ranks, (config.size + ranks - 1) / ranks * ranks);
}

TEST_P(PlanOverRanks, DropGivesEveryRankTheSameAndRepeatsNothing) {
  const Case config = this->config(Uneven::kDrop);
  const auto positions = positions_per_rank(config);
  EXPECT_EQ(std::ranges::count(positions, positions[0]), std::ssize(positions));
  for (const auto& [sample, times] : count_over_ranks(config)) ASSERT_EQ(times, 1) << sample;
  EXPECT_EQ(positions[0], config.size / config.plan.world_size);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlanOverRanks,
                         testing::Combine(testing::Values(1, 7, 64, 100, 1001), testing::Values(1, 8, 30),
                                          testing::Values(1, 2, 3, 8)));

}  // namespace
}  // namespace feedline::plan
