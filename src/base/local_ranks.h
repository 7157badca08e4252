// SPDX-License-Identifier: Apache-2.0
#pragma once

// Processes of one machine that train together and so share its CPUs and memory, as launchers number them.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace feedline::base {

struct LocalRanks {
  int rank = 0;
  int count = 1;
};

// From the variables of torchrun, Open MPI, Hydra (MPICH, Intel MPI), MVAPICH or Slurm: the first of them that says
// both. A launcher that tells no count, as Lightning's, is believed to have all ranks here where they meet at the
// loopback address. What makes no sense counts as one rank.
LocalRanks local_ranks();

// The same from a made environment: nullopt for a variable that is not set.
using Environment = std::function<std::optional<std::string>(const char*)>;
LocalRanks local_ranks(const Environment& environment);

// How many ranks share the CPUs that this process may use: all of this machine, or 1 where the launcher has bound each,
// so that its mask has no more (`bound`) than a rank's part of the machine or container (`around`). `root` is a seam
// for tests: where /proc and /sys are.
int sharing_ranks(int bound, int around, const LocalRanks& ranks);
int sharing_ranks(const std::string& root = "");

// The CPUs that are this process's, of the `usable` ones, at least 1.
int share_of_cpus(int usable, int bound, int around, const LocalRanks& ranks);
int share_of_cpus(const std::string& root = "");

}  // namespace feedline::base
