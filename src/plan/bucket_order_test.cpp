// SPDX-License-Identifier: Apache-2.0
#include "plan/bucket_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "plan/plan.h"

namespace feedline::plan {
namespace {

using Numbers = std::vector<std::uint64_t>;

Numbers lengths_of(std::size_t count, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Numbers lengths(count);
  for (std::uint64_t& length : lengths) length = 1 + random() % 100;
  return lengths;
}

// rows: the batch size of a rank for the buckets up to 10, 40 and 100.
std::shared_ptr<const Buckets> buckets(const Numbers& lengths, Numbers rows, std::uint64_t ranks = 1) {
  return std::make_shared<const Buckets>(
      std::vector<Bucket>{{10, rows[0] * ranks}, {40, rows[1] * ranks}, {100, rows[2] * ranks}}, lengths);
}

Plan plan(const std::shared_ptr<const Buckets>& sorted, std::uint64_t epoch, PlanConfig config, bool shuffle = true) {
  config.batch_rows = 0;
  for (const Bucket& bucket : sorted->all())
    config.batch_rows = std::max(config.batch_rows, bucket.rows / config.world_size);
  return {make_order({.size = sorted->samples(), .shuffle = shuffle, .seed = 7, .buckets = sorted}, epoch), config};
}

Numbers batch_of(const Plan& plan, std::uint64_t batch, std::uint64_t batch_rows) {
  Numbers samples(plan.rows(batch)), draws(samples.size());
  plan.place(batch * batch_rows, samples, draws);
  for (std::uint64_t row = 0; row < samples.size(); ++row)
    EXPECT_EQ(plan.at(batch * batch_rows + row), (OrderedSample{samples[row], draws[row]}));
  return samples;
}

TEST(Buckets, HaveTheSamplesThatFitNoShorterOne) {
  const Buckets sorted({{4, 1}, {8, 1}, {9, 1}}, Numbers{9, 1, 4, 5, 8, 4});
  const auto members = [&](std::uint64_t b) { return Numbers(sorted.members(b).begin(), sorted.members(b).end()); };
  EXPECT_EQ(members(0), (Numbers{1, 2, 5}));
  EXPECT_EQ(members(1), (Numbers{3, 4}));
  EXPECT_EQ(members(2), (Numbers{0}));
}

TEST(Buckets, BoundsByQuantilesAreMultiplesOfEightThatHoldAll) {
  Numbers lengths(100);
  for (std::uint64_t i = 0; i < 100; ++i) lengths[(i * 37) % 100] = i + 1;
  EXPECT_EQ(quantile_bounds(lengths, 4), (Numbers{32, 56, 80, 104}));
  EXPECT_EQ(quantile_bounds(lengths, 1), (Numbers{104}));
  EXPECT_EQ(quantile_bounds({3, 3, 3}, 10), (Numbers{8}));
  EXPECT_EQ(quantile_bounds({1000, 3}, 2), (Numbers{8, 1000}));
}

TEST(BucketOrder, GivesEverySampleOnceAndAnotherOrderEveryEpoch) {
  for (const std::size_t count : {1, 7, 100, 1000}) {
    const auto sorted = buckets(lengths_of(count, 1), {5, 3, 2});
    std::map<Numbers, int> orders;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const auto order = make_order({.size = count, .shuffle = true, .seed = 3, .buckets = sorted}, epoch);
      Numbers samples;
      for (std::uint64_t p = 0; p < order->size(); ++p) samples.push_back(order->at(p).sample);
      ++orders[samples];
      const std::uint64_t from = count / 3;
      Numbers placed(count - from), draws(count - from);
      order->place(from, placed, draws);
      EXPECT_TRUE(std::ranges::equal(placed, std::span(samples).subspan(from)));
      EXPECT_EQ(draws, placed);
      std::ranges::sort(samples);
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(samples[i], i);
    }
    EXPECT_EQ(orders.size(), count > 7 ? 3u : orders.size());
  }
}

TEST(BucketOrder, WhatFillsNoBatchGoesUpAndIsOthersEveryEpoch) {
  // 13 short samples in batches of 5, 8 medium ones in batches of 4, 3 long ones in batches of 3
  Numbers lengths(24, 100);
  std::fill_n(lengths.begin(), 13, 5);
  std::fill_n(lengths.begin() + 13, 8, 40);
  const auto sorted = buckets(lengths, {5, 4, 3});
  std::set<Numbers> carried;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const BucketOrder order(sorted, true, epoch);
    // 2 of 5 (3 move up), 11 / 4 = 2 (3 move up), 6 / 3 = 2 and no rest
    ASSERT_EQ(order.batches(), 6u);
    EXPECT_EQ(order.begin(6), 24u);
    Numbers count(3), up;
    for (std::uint64_t batch = 0; batch < 6; ++batch) {
      const std::uint64_t bucket = order.bucket(batch);
      ++count[bucket];
      ASSERT_EQ(order.begin(batch + 1) - order.begin(batch), (*sorted)[bucket].rows);
      for (std::uint64_t row = 0; row < (*sorted)[bucket].rows; ++row) {
        const std::uint64_t sample = order.at(order.begin(batch) + row).sample;
        ASSERT_LE(lengths[sample], (*sorted)[bucket].bound);
        if (bucket > 0 && sample < 13) up.push_back(sample);
      }
    }
    EXPECT_EQ(count, (Numbers{2, 2, 2}));
    std::ranges::sort(up);
    EXPECT_EQ(up.size(), 3u);
    carried.insert(up);
  }
  EXPECT_GT(carried.size(), 10u);
}

TEST(BucketOrder, BatchesOfAllBucketsAreMixedWhenShuffledAndSortedWhenNot) {
  const auto sorted = buckets(lengths_of(500, 2), {5, 3, 2});
  const auto sequence = [&](bool shuffle) {
    const BucketOrder order(sorted, shuffle, 1);
    Numbers result;
    for (std::uint64_t batch = 0; batch < order.batches(); ++batch) result.push_back(order.bucket(batch));
    return result;
  };
  EXPECT_TRUE(std::ranges::is_sorted(sequence(false)));
  EXPECT_FALSE(std::ranges::is_sorted(sequence(true)));
  Numbers shuffled = sequence(true);
  std::ranges::sort(shuffled);
  EXPECT_EQ(shuffled, sequence(false));
  const BucketOrder plain(sorted, false, 1);
  EXPECT_EQ(plain.at(0).sample, sorted->members(0)[0]);
  EXPECT_EQ(plain.at(1).sample, sorted->members(0)[1]);
}

class BucketPlans : public testing::TestWithParam<int> {};

TEST_P(BucketPlans, EveryRankHasTheSameStepsAndShapesAndAllOfThemEverySampleOnce) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const Numbers lengths = lengths_of(8 + random() % 400, random());
  const Numbers rows{1 + random() % 6, 1 + random() % 4, 1 + random() % 3};
  const bool shuffle = random() % 2 == 0;
  for (const std::uint64_t ranks : {1, 2, 3, 4, 8}) {
    const auto sorted = buckets(lengths, rows, ranks);
    for (const Uneven uneven : {Uneven::kPad, Uneven::kDrop, Uneven::kExact}) {
      std::map<std::uint64_t, int> seen;
      std::vector<std::pair<std::uint64_t, std::uint64_t>> shapes;  // of rank 0: rows and bound
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        const Plan cut = plan(sorted, 2, {.rank = rank, .world_size = ranks, .uneven = uneven}, shuffle);
        const std::uint64_t capacity = std::ranges::max(rows);
        std::uint64_t samples = 0;
        for (std::uint64_t batch = 0; batch < cut.batches(); ++batch) {
          const std::uint64_t bound = (*sorted)[cut.bucket(batch)].bound;
          const bool last = batch + 1 == cut.batches();
          if (rank == 0) shapes.emplace_back(cut.rows(batch), bound);
          if (!last || uneven != Uneven::kExact) {
            ASSERT_EQ(shapes.at(batch), std::pair(cut.rows(batch), bound));
          }
          for (const std::uint64_t sample : batch_of(cut, batch, capacity)) {
            ASSERT_LE(lengths[sample], bound);
            ++seen[sample];
          }
          samples += cut.rows(batch);
        }
        EXPECT_EQ(samples, cut.samples(rank));
        EXPECT_EQ(cut.batches(), uneven == Uneven::kExact ? cut.batches() : shapes.size());
      }
      const auto twice = std::ranges::count_if(seen, [](const auto& s) { return s.second > 1; });
      const std::uint64_t dropped = uneven == Uneven::kDrop ? (lengths.size() - seen.size()) : 0;
      EXPECT_EQ(seen.size() + dropped, lengths.size());
      EXPECT_LT(dropped, ranks);
      EXPECT_LT(twice, uneven == Uneven::kPad ? static_cast<std::int64_t>(ranks) : 1);
    }
  }
}

TEST_P(BucketPlans, GoesOnFromEveryBatchWithAsManyRanksOrOthers) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const Numbers lengths = lengths_of(8 + random() % 200, random());
  const auto sorted = buckets(lengths, {6 * (1 + random() % 2), 6, 6});  // over all ranks
  const Plan whole = plan(sorted, 1, {});
  const auto global_batch = [&](const PlanConfig& start, std::uint64_t ranks, std::uint64_t batch) {
    Numbers samples;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      PlanConfig config = start;
      config.rank = rank, config.world_size = ranks, config.uneven = Uneven::kExact;
      const Plan cut = plan(sorted, 1, config);
      const std::uint64_t capacity = std::max((*sorted)[0].rows, (*sorted)[1].rows) / ranks;
      const Numbers part = batch_of(cut, batch, capacity);
      samples.insert(samples.end(), part.begin(), part.end());
    }
    return samples;
  };
  const std::uint64_t capacity = std::max((*sorted)[0].rows, (*sorted)[1].rows);
  for (std::uint64_t done = 0; done < whole.batches(); ++done) {
    PlanConfig start;
    start.begin = whole.begin_of(done);
    for (const std::uint64_t ranks : {1, 2, 3, 6})
      ASSERT_EQ(global_batch(start, ranks, 0), batch_of(whole, done, capacity)) << done << " on " << ranks;
    EXPECT_EQ(plan(sorted, 1, start).batches(), whole.batches() - done);
  }
  EXPECT_EQ(plan(sorted, 1, {.begin = whole.begin_of(whole.batches())}).batches(), 0u);
}

TEST_P(BucketPlans, LeavesOutWhatWasDeliveredOutOfOrder) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const Numbers lengths = lengths_of(60 + random() % 100, random());
  const auto sorted = buckets(lengths, {5, 3, 2});
  const Plan whole = plan(sorted, 0, {});
  std::vector<Positions> delivered;
  std::set<std::uint64_t> left;
  for (std::uint64_t batch = 3; batch < whole.batches(); ++batch)
    if (random() % 3 == 0)
      whole.add_positions(batch, delivered);
    else
      left.insert(batch);
  const std::uint64_t begin = whole.begin_of(3);
  const Plan rest = plan(sorted, 0, {.begin = begin, .delivered = tidied(delivered, begin)});
  ASSERT_EQ(rest.batches(), left.size());
  std::uint64_t batch = 0;
  for (const std::uint64_t expected : left) {
    EXPECT_EQ(batch_of(rest, batch, 5), batch_of(whole, expected, 5));
    EXPECT_EQ(rest.index_of(batch), expected);
    EXPECT_EQ(rest.begin_of(batch), whole.begin_of(expected));
    ++batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, BucketPlans, testing::Range(0, 20));

}  // namespace
}  // namespace feedline::plan
