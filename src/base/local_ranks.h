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

// The CPUs that are this process's, of the `usable` ones: launchers that bind each rank have shared out the CPUs of the
// machine or container (`around`) already, so that its mask has few of them (`bound`); others leave it to the ranks.
int share_of_cpus(int usable, int bound, int around, const LocalRanks& ranks);
int share_of_cpus();
double share_of_capacity();  // the same of CPU time, with a quota's fraction

}  // namespace feedline::base
