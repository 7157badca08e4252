// SPDX-License-Identifier: Apache-2.0
#pragma once

// Local ranks: processes on one machine that train together and share its CPUs and memory.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace feedline::base {

struct LocalRanks {
  int rank = 0;
  int count = 1;
};

// Reads the environment variables of torchrun, Open MPI, Hydra (MPICH, Intel MPI), MVAPICH or Slurm, and uses the first
// launcher that sets both the local rank and the local count. If a launcher sets no local count (Lightning does not),
// all ranks are assumed to be on this machine if the master address is loopback. Invalid values are treated as one
// rank.
LocalRanks local_ranks();

// Like local_ranks(), but reads the variables with `environment`, which returns nullopt for an unset variable.
using Environment = std::function<std::optional<std::string>(const char*)>;
LocalRanks local_ranks(const Environment& environment);

// Returns the number of ranks that share this process's CPUs: all ranks on this machine, or 1 if the launcher has bound
// each rank to its own CPUs. Binding is assumed if the affinity mask (`bound`) has at most one rank's share of the CPUs
// in the machine or container (`around`). `root` replaces the location of /proc and /sys in tests.
int sharing_ranks(int bound, int around, const LocalRanks& ranks);
int sharing_ranks(const std::string& root = "");

// Returns how many of the `usable` CPUs this process should use, at least 1.
int share_of_cpus(int usable, int bound, int around, const LocalRanks& ranks);
int share_of_cpus(const std::string& root = "");

}  // namespace feedline::base
