// SPDX-License-Identifier: Apache-2.0
#include "base/local_ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "base/cpus.h"

namespace feedline::base {
namespace {

using Variables = std::map<std::string, std::string>;

std::pair<int, int> ranks_of(const Variables& variables) {
  const LocalRanks ranks = local_ranks([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  return {ranks.rank, ranks.count};
}

TEST(LocalRanks, AreThoseOfEachLauncher) {
  EXPECT_EQ(ranks_of({}), std::pair(0, 1));
  EXPECT_EQ(ranks_of({{"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}}), std::pair(3, 8));
  EXPECT_EQ(ranks_of({{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}), std::pair(1, 4));
  EXPECT_EQ(ranks_of({{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}), std::pair(1, 2));
  EXPECT_EQ(ranks_of({{"MV2_COMM_WORLD_LOCAL_RANK", "0"}, {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}}), std::pair(0, 2));
}

TEST(LocalRanks, OfSlurmAreThoseOfTheStepOnThisMachine) {
  Variables slurm{{"SLURM_STEP_ID", "0"}, {"SLURM_LOCALID", "2"}, {"SLURM_NTASKS_PER_NODE", "8"}};
  EXPECT_EQ(ranks_of(slurm), std::pair(2, 8));
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "4(x2),3";
  EXPECT_EQ(ranks_of(slurm), std::pair(2, 4)) << "a step may have fewer than the job was given";
  slurm["SLURM_NODEID"] = "2";
  EXPECT_EQ(ranks_of(slurm), std::pair(2, 3));
  slurm.erase("SLURM_STEP_ID");
  EXPECT_EQ(ranks_of(slurm), std::pair(0, 1)) << "the batch script is no task";
}

TEST(LocalRanks, OfTheInnermostLauncherCount) {
  EXPECT_EQ(ranks_of({{"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NTASKS_PER_NODE", "1"}}),
            std::pair(1, 2));
}

TEST(LocalRanks, ThatMeetAtTheLoopbackAddressAreAllHere) {
  EXPECT_EQ(ranks_of({{"MASTER_ADDR", "127.0.0.1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}}), std::pair(1, 4));
  EXPECT_EQ(ranks_of({{"MASTER_ADDR", "localhost"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}}), std::pair(3, 4));
  EXPECT_EQ(ranks_of({{"MASTER_ADDR", "10.0.0.1"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}}), std::pair(0, 1));
}

TEST(LocalRanks, ThatMakeNoSenseAreOne) {
  for (const auto& [rank, count] : {std::pair("8", "8"), {"x", "-1"}, {"", ""}, {"1", "2x"}, {"0", "99999999999"}})
    EXPECT_EQ(ranks_of({{"LOCAL_RANK", rank}, {"LOCAL_WORLD_SIZE", count}}), std::pair(0, 1)) << rank << count;
  for (const char* tasks : {"", ",", "4(x", "(x2)", "4(x2),", "x"})
    EXPECT_EQ(ranks_of({{"SLURM_STEP_ID", "0"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "7"},
                        {"SLURM_STEP_TASKS_PER_NODE", tasks}}),
              std::pair(0, 1))
        << tasks;
}

TEST(ShareOfCpus, IsOfTheContainerNotOfTheMachineAroundIt) {
  EXPECT_EQ(share_of_cpus(16, 16, 128, {2, 8}), 16) << "bound by the launcher on a machine of 128";
  EXPECT_EQ(share_of_cpus(16, 16, 16, {2, 8}), 2) << "all that the container has";
  EXPECT_EQ(sharing_ranks(16, 128, {2, 8}), 1);
  EXPECT_EQ(sharing_ranks(16, 16, {2, 8}), 8);
}

TEST(ShareOfCpus, IsAllWithoutRanks) {
  EXPECT_EQ(share_of_cpus(), usable_cpus());
  EXPECT_EQ(sharing_ranks(), 1);
}

}  // namespace
}  // namespace feedline::base
