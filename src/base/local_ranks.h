// SPDX-License-Identifier: Apache-2.0
#pragma once

// Processes on one machine that train together and share its CPUs and memory, as numbered by launchers.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace feedline::base {

struct LocalRanks {
  int rank = 0;
  int count = 1;
};

// Reads the variables of torchrun, Open MPI, Hydra (MPICH, Intel MPI), MVAPICH or Slurm: the first launcher that sets
// both. If a launcher sets no local count, as Lightning does not, all ranks are assumed to be on this machine if the
// master address is loopback. Invalid values count as one rank.
LocalRanks local_ranks();

// The same from a given environment: nullopt for a variable that is not set.
using Environment = std::function<std::optional<std::string>(const char*)>;
LocalRanks local_ranks(const Environment& environment);

// The number of ranks that share this process's CPUs: all on this machine, or 1 if the launcher has bound each rank, so
// that its mask (`bound`) has at most one rank's share of the machine or container (`around`). `root` is the location
// of /proc and /sys, replaceable in tests.
int sharing_ranks(int bound, int around, const LocalRanks& ranks);
int sharing_ranks(const std::string& root = "");

// The number of the `usable` CPUs for this process, at least 1.
int share_of_cpus(int usable, int bound, int around, const LocalRanks& ranks);
int share_of_cpus(const std::string& root = "");

}  // namespace feedline::base
