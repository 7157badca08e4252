// SPDX-License-Identifier: Apache-2.0
#include "feedline/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/loader.h"

namespace feedline {
namespace {

std::vector<std::uint64_t> delivered(const std::vector<std::uint8_t>& rows, LoaderOptions options) {
  auto dataset =
      arrays({{"y", reinterpret_cast<const std::byte*>(rows.data()), rows.size(), 1, {DType::kUint8, {}}, {}}});
  auto loader = dataset->loader(options);
  std::vector<std::uint64_t> samples;
  for (auto batch = loader->next(); batch && *batch; batch = loader->next())
    samples.insert(samples.end(), (*batch)->samples().begin(), (*batch)->samples().end());
  return samples;
}

TEST(SampleOrder, IsWhatALoaderDelivers) {
  const std::vector<std::uint8_t> rows(100);
  for (const bool shuffle : {false, true}) {
    LoaderOptions options;
    options.batch_size = 7;
    options.shuffle = shuffle;
    options.seed = 5;
    const auto order = sample_order({.samples = 100, .shard_ends = {}, .shuffle = shuffle, .seed = 5, .count = 100});
    EXPECT_EQ(delivered(rows, options), *order);
  }
}

TEST(SampleOrder, OfAPartIsThatPartOfTheWhole) {
  OrderQuery query{
      .samples = 60, .shard_ends = {10, 30, 60}, .shuffle = true, .shard_window = 2, .epoch = 3, .count = 60};
  const auto whole = *sample_order(query);
  query.begin = 25;
  query.count = 20;
  EXPECT_EQ(*sample_order(query), std::vector<std::uint64_t>(whole.begin() + 25, whole.begin() + 45));
  auto sorted = whole;
  std::ranges::sort(sorted);
  std::vector<std::uint64_t> each(60);
  std::iota(each.begin(), each.end(), 0);
  EXPECT_EQ(sorted, each);
}

TEST(SampleOrder, RefusesWhatIsNoOrder) {
  const auto refused = [](const OrderQuery& query) {
    const auto order = sample_order(query);
    return !order && order.error().code == ErrorCode::kConfig;
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({.samples = 5, .shard_ends = {}, .begin = 3, .count = 3}));
  EXPECT_TRUE(refused({.samples = 5, .shard_ends = {}, .begin = 6}));
  EXPECT_TRUE(refused({.samples = 5, .shard_ends = {}, .begin = 1, .count = ~std::uint64_t{0}}));
  EXPECT_TRUE(refused({.samples = 5, .shard_ends = {2, 4}, .count = 1}));
  EXPECT_TRUE(refused({.samples = 5, .shard_ends = {4, 2, 5}, .count = 1}));
}

}  // namespace
}  // namespace feedline
