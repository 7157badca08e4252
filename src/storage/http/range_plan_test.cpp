// SPDX-License-Identifier: Apache-2.0
#include "storage/http/range_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace feedline::storage {
namespace {

constexpr RangeLimits kLimits{
    .widest_gap = 100, .longest_joined = 1000, .longest = 2000, .waste_share = 0.5, .free_waste = 10};

std::vector<RangeRequest> plan(std::vector<WantedRange> wanted, RangeLimits limits = kLimits) {
  return plan_ranges(wanted, limits);
}

TEST(RangePlan, ReadsThatAreNearAreOneRequest) {
  const auto requests = plan({{0, 300, 100}, {0, 100, 180}});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].offset, 100u);
  EXPECT_EQ(requests[0].bytes, 300u);
  ASSERT_EQ(requests[0].parts.size(), 2u);
  EXPECT_EQ(requests[0].parts[0].read, 1u) << "by their offsets";
}

TEST(RangePlan, ReadsThatAreFarOrOfOtherObjectsAreNot) {
  EXPECT_EQ(plan({{0, 0, 500}, {0, 600, 300}}).size(), 1u);
  EXPECT_EQ(plan({{0, 0, 500}, {0, 601, 300}}).size(), 2u) << "the gap";
  EXPECT_EQ(plan({{0, 0, 500}, {1, 500, 300}}).size(), 2u) << "another object";
  EXPECT_EQ(plan({{0, 0, 500}, {0, 500, 500}}).size(), 1u);
  EXPECT_EQ(plan({{0, 0, 500}, {0, 500, 501}}).size(), 2u) << "too long together";
  EXPECT_EQ(plan({{0, 0, 20}, {0, 40, 20}}).size(), 1u);
  EXPECT_EQ(plan({{0, 0, 20}, {0, 41, 20}}).size(), 2u) << "mostly unwanted bytes";
}

TEST(RangePlan, ALongReadIsSeveralRequestsOfItsOwn) {
  const auto requests = plan({{0, 5000, 10}, {0, 10, 4990}, {0, 0, 10}});
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_EQ(requests[0].offset, 5000u) << "what is needed first is asked for first";
  for (std::size_t i = 1; i < 4; ++i) EXPECT_LE(requests[i].bytes, 1664u) << "parts of one length";
  EXPECT_EQ(plan({{0, 0, 2000}}).size(), 1u);
}

TEST(RangePlan, ReadsOfTheSameBytesAreOneRequest) {
  const auto requests = plan({{0, 10, 900}, {0, 10, 900}, {0, 20, 5}});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].bytes, 900u);
  EXPECT_EQ(requests[0].parts.size(), 3u);
}

TEST(RangePlan, LimitsFollowTheSpeedWithinBounds) {
  const RangeLimits unknown = range_limits({}), usual = range_limits({0.01, 60e6}), far = range_limits({10, 1e9});
  EXPECT_EQ(usual.widest_gap, 600'000u);
  EXPECT_EQ(usual.longest_joined, 600'000u);
  EXPECT_GT(unknown.widest_gap, 512u) << "headers of a tar are no reason for a request";
  EXPECT_LT(unknown.widest_gap, usual.widest_gap);
  EXPECT_LE(far.widest_gap, std::uint64_t{1} << 20);
  EXPECT_LE(far.longest_joined, far.longest);
  EXPECT_EQ(range_limits({std::numeric_limits<double>::infinity(), 1}).longest_joined, far.longest_joined);
}

// For any input, each byte of each read is in exactly one part, parts are inside their requests, and no limit is
// exceeded.
TEST(RangePlan, AnyReadsAreCoveredOnceAndWithinBounds) {
  std::mt19937_64 random(7);
  const auto number = [&](std::uint64_t most) { return random() % (most + 1); };
  for (int round = 0; round < 3000; ++round) {
    const RangeLimits limits{.widest_gap = number(300),
                             .longest_joined = 1 + number(3000),
                             .longest = 1 + number(3000),
                             .waste_share = static_cast<double>(number(100)) / 100,
                             .free_waste = number(50)};
    std::vector<WantedRange> wanted(number(40));
    for (WantedRange& one : wanted) one = {number(2), number(20'000), 1 + number(round % 2 == 0 ? 200 : 5000)};
    const auto requests = plan_ranges(wanted, limits);
    std::vector<std::vector<RangePart>> of_read(wanted.size());
    std::size_t last_first = 0;
    for (const RangeRequest& request : requests) {
      ASSERT_FALSE(request.parts.empty());
      ASSERT_TRUE(std::ranges::is_sorted(request.parts, {}, &RangePart::offset));
      const bool is_joined = request.parts.size() > 1;
      std::uint64_t at = request.offset, unwanted = 0;
      std::size_t first = wanted.size();
      for (const RangePart& part : request.parts) {
        ASSERT_EQ(wanted[part.read].object, request.object);
        ASSERT_GE(part.offset, request.offset);
        ASSERT_LE(part.offset + part.bytes, request.offset + request.bytes);
        if (part.offset > at) {
          ASSERT_LE(part.offset - at, limits.widest_gap);
          unwanted += part.offset - at;
        }
        at = std::max(at, part.offset + part.bytes);
        first = std::min(first, part.read);
        of_read[part.read].push_back(part);
      }
      ASSERT_EQ(at, request.offset + request.bytes) << "nothing after the last part";
      ASSERT_EQ(request.parts.front().offset, request.offset) << "nor before the first";
      ASSERT_LE(unwanted,
                std::max(limits.free_waste, static_cast<std::uint64_t>(limits.waste_share *
                                                                       static_cast<double>(request.bytes - unwanted))));
      std::uint64_t largest = 0;
      for (const RangePart& part : request.parts) largest = std::max(largest, part.bytes);
      ASSERT_LE(request.bytes, limits.longest) << "or a read that is as long by itself";
      if (is_joined) {
        ASSERT_LE(request.bytes, std::max(limits.longest_joined, largest));
      }
      ASSERT_LE(last_first, first);
      last_first = first;
    }
    for (std::size_t read = 0; read < wanted.size(); ++read) {
      std::ranges::sort(of_read[read], {}, &RangePart::offset);
      std::uint64_t at = wanted[read].offset;
      for (const RangePart& part : of_read[read]) {
        ASSERT_EQ(part.offset, at);
        at += part.bytes;
      }
      ASSERT_EQ(at, wanted[read].offset + wanted[read].bytes);
    }
  }
}

}  // namespace
}  // namespace feedline::storage
