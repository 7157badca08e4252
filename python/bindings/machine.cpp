// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>

#include "base/cpus.h"
#include "base/local_ranks.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

void bind_machine(nb::module_& module) {
  using base::CpuLimits;
  using base::MemoryLimits;
  nb::class_<CpuLimits>(module, "CpuLimits", "The CPUs that a process may use.")
      .def_ro("allowed", &CpuLimits::allowed, "The numbers of the CPUs in both the affinity mask and the cpuset.")
      .def_ro("quota", &CpuLimits::quota, "The cgroup's CPU quota, in CPUs; None if there is no quota.")
      .def_ro("around", &CpuLimits::around, "Number of CPUs of the machine or the container.")
      .def_prop_ro("capacity", &CpuLimits::capacity, "CPU time available per second, in CPUs.")
      .def_prop_ro("threads", &CpuLimits::threads,
                   "Number of threads that can be kept busy: 3 for a quota of 2.5 CPUs.");
  nb::class_<MemoryLimits>(
      module, "MemoryLimits",
      "The memory that a process may use, in bytes; a value is None if it is not reported or unlimited.")
      .def_ro("physical_bytes", &MemoryLimits::physical_bytes)
      .def_ro("available_bytes", &MemoryLimits::available_bytes, "Memory available on the machine.")
      .def_ro("limit_bytes", &MemoryLimits::limit_bytes, "The lowest limit of the cgroup and its ancestors.")
      .def_ro("binding_bytes", &MemoryLimits::binding_bytes,
              "The limit of the cgroup or ancestor with the least free memory.")
      .def_ro("binding_used_bytes", &MemoryLimits::binding_used_bytes,
              "Memory used by the cgroup that `binding_bytes` limits, without reclaimable page cache.")
      .def_ro("swap_limit_bytes", &MemoryLimits::swap_limit_bytes)
      .def_ro("oom_kills", &MemoryLimits::oom_kills,
              "Number of processes in this cgroup that were killed because memory ran out.")
      .def_prop_ro("usable_bytes", &MemoryLimits::usable_bytes)
      .def_prop_ro("left_bytes", &MemoryLimits::left_bytes);
  module.def("cpu_limits", &base::cpu_limits, "root"_a = "", "pid"_a = 0,
             "Returns the CPU limits of a process; a `pid` of 0 means this process. `root` is the location of /proc "
             "and /sys.");
  module.def("memory_limits", &base::memory_limits, "root"_a = "", "pid"_a = 0);
  module.def("cgroup_version", &base::cgroup_version, "root"_a = "", "pid"_a = 0,
             "Returns the version of the process's cgroup, 1 or 2; 0 if no cgroup is visible.");
  module.def("online_cpus", &base::online_cpus,
             "Returns the number of the machine's CPUs, whether or not this process may use them.");
  module.def(
      "local_ranks",
      [] {
        const base::LocalRanks ranks = base::local_ranks();
        return nb::make_tuple(ranks.rank, ranks.count);
      },
      nb::sig("def local_ranks() -> tuple[int, int]"),
      "Returns this process's rank on this machine and the number of ranks on it, as set by the launcher.");
  module.def(
      "share_of_cpus", [](const std::string& root) { return base::share_of_cpus(root); }, "root"_a = "",
      "Returns the number of threads that this rank can keep busy.");
  module.def(
      "sharing_ranks", [](const std::string& root) { return base::sharing_ranks(root); }, "root"_a = "",
      "Returns the number of ranks that share the CPUs of this process.");
}

}  // namespace feedline::python
