// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/thread_placement.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace feedline::pipeline {
namespace {

const base::CpuTopology kTwoNodes{{{0, {{{0, 4}}, {{1, 5}}}}, {3, {{{2, 6}}, {{3, 7}}}}}};

TEST(ThreadPlacement, OneProcessIsNearItsTrainingLoop) {
  EXPECT_EQ(near_node(kTwoNodes, 5, {}), 0);
  EXPECT_EQ(near_node(kTwoNodes, 6, {}), 3);
  EXPECT_EQ(near_node(kTwoNodes, -1, {}), std::nullopt);
  EXPECT_EQ(near_node({}, 0, {}), std::nullopt);
}

TEST(ThreadPlacement, SeveralProcessesShareTheNodesWhereverTheyRunNow) {
  std::vector<int> nodes;
  for (int rank = 0; rank < 4; ++rank) nodes.push_back(*near_node(kTwoNodes, 0, {rank, 4}));
  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 3, 3}));
  EXPECT_EQ(near_node(kTwoNodes, 0, {2, 3}), 3);
}

TEST(ThreadPlacement, TakesRanksFromTheLauncherAndNoNonsense) {
  const auto with = [](const char* rank, const char* count) {
    ::setenv("LOCAL_RANK", rank, 1);
    ::setenv("LOCAL_WORLD_SIZE", count, 1);
    const LocalRanks ranks = local_ranks();
    ::unsetenv("LOCAL_RANK");
    ::unsetenv("LOCAL_WORLD_SIZE");
    return std::pair(ranks.rank, ranks.count);
  };
  EXPECT_EQ(with("3", "8"), std::pair(3, 8));
  EXPECT_EQ(with("8", "8"), std::pair(0, 1));
  EXPECT_EQ(with("x", "-1"), std::pair(0, 1));
  EXPECT_EQ(with("", ""), std::pair(0, 1));
}

TEST(ThreadPlacement, RanksShareTheCpusThatNobodyHasSharedOut) {
  EXPECT_EQ(share_of_cpus(64, 64, 64, {}), 64);
  EXPECT_EQ(share_of_cpus(64, 64, 64, {2, 8}), 8);
  EXPECT_EQ(share_of_cpus(8, 8, 64, {2, 8}), 8) << "the launcher has bound each rank";
  EXPECT_EQ(share_of_cpus(4, 8, 64, {2, 8}), 4) << "and a quota is lower";
  EXPECT_EQ(share_of_cpus(16, 64, 64, {2, 8}), 2) << "a quota for all ranks together";
  EXPECT_EQ(share_of_cpus(3, 64, 64, {2, 8}), 1);
  EXPECT_EQ(share_of_cpus(2, 2, 2, {1, 2}), 1);
}

TEST(ThreadPlacement, GivesEachThreadCpus) {
  for (const auto& cpus : place_workers(2)) EXPECT_FALSE(cpus.empty());
}

}  // namespace
}  // namespace feedline::pipeline
