// SPDX-License-Identifier: Apache-2.0
#include "feedline/observe.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "interop/described.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

// Like os.fsdecode(), as a name need not be UTF-8.
nb::object as_path(const std::string& path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

nb::object as_paths(const std::vector<std::string>& paths) {
  nb::list list;
  for (const std::string& path : paths) list.append(as_path(path));
  return list;
}

}  // namespace

template <>
struct Plain<Event> {
  using Type = nb::tuple;
  static Type of(const Event& event) {
    return nb::make_tuple(event.kind, event.thread, event.begin_ns, event.wall_ns, event.cpu_ns, event.a, event.b);
  }
};

template <>
inline constexpr auto kMembers<EventTotals> = std::tuple(Member{"count", &EventTotals::count},
                                                         Member{"wall_ns", &EventTotals::wall_ns},
                                                         Member{"cpu_ns", &EventTotals::cpu_ns},
                                                         Member{"longest_ns", &EventTotals::longest_ns},
                                                         Member{"a", &EventTotals::a},
                                                         Member{"wall", &EventTotals::wall});

namespace {

// Totals of the event kinds that occurred.
nb::object by_kind(const std::array<EventTotals, kEventKinds>& totals) {
  nb::dict dict;
  for (int kind = 0; kind < kEventKinds; ++kind)
    if (const auto& one = totals[static_cast<std::size_t>(kind)]; one.count > 0) dict[nb::int_(kind)] = to_dict(one);
  return dict;
}

}  // namespace

template <>
inline constexpr auto kMembers<RecordedEvents> = std::tuple(Member{"pid", &RecordedEvents::pid},
                                                            Member{"parent", &RecordedEvents::parent},
                                                            Member{"created_ns", &RecordedEvents::created_ns},
                                                            Member{"written", &RecordedEvents::written},
                                                            Member{"events", &RecordedEvents::events},
                                                            Member{"totals", &RecordedEvents::totals, &by_kind});

template <>
inline constexpr auto kMembers<ProcessCounters> = std::tuple(
    Member{"time_ns", &ProcessCounters::time_ns}, Member{"pid", &ProcessCounters::pid},
    Member{"parent", &ProcessCounters::parent}, Member{"cpu_ns", &ProcessCounters::cpu_ns},
    Member{"system_ns", &ProcessCounters::system_ns}, Member{"delay_ns", &ProcessCounters::delay_ns},
    Member{"device_bytes", &ProcessCounters::device_bytes}, Member{"read_bytes", &ProcessCounters::read_bytes},
    Member{"read_calls", &ProcessCounters::read_calls}, Member{"minor_faults", &ProcessCounters::minor_faults},
    Member{"major_faults", &ProcessCounters::major_faults}, Member{"resident_bytes", &ProcessCounters::resident_bytes},
    Member{"threads", &ProcessCounters::threads});

template <>
inline constexpr auto kMembers<HostCounters> = std::tuple(
    Member{"time_ns", &HostCounters::time_ns}, Member{"busy_ns", &HostCounters::busy_ns},
    Member{"throttled_ns", &HostCounters::throttled_ns}, Member{"cpu_pressure_ns", &HostCounters::cpu_pressure_ns},
    Member{"io_pressure_ns", &HostCounters::io_pressure_ns},
    Member{"memory_pressure_ns", &HostCounters::memory_pressure_ns},
    Member{"memory_events", &HostCounters::memory_events}, Member{"available_bytes", &HostCounters::available_bytes},
    Member{"swapped_pages", &HostCounters::swapped_pages}, Member{"disk_reads", &HostCounters::disk_reads},
    Member{"disk_bytes", &HostCounters::disk_bytes}, Member{"disk_read_ns", &HostCounters::disk_read_ns},
    Member{"shared_memory_used", &HostCounters::shared_memory_used});

template <>
inline constexpr auto kMembers<TreeMemory> = std::tuple(Member{"time_ns", &TreeMemory::time_ns},
                                                        Member{"bytes", &TreeMemory::bytes},
                                                        Member{"exact", &TreeMemory::exact});

template <>
inline constexpr auto kMembers<GpuDriver> = std::tuple(Member{"is_there", &GpuDriver::is_there},
                                                       Member{"version", &GpuDriver::version},
                                                       Member{"gpus", &GpuDriver::gpus});

template <>
inline constexpr auto kMembers<GpuFacts> = std::tuple(
    Member{"index", &GpuFacts::index}, Member{"uuid", &GpuFacts::uuid}, Member{"name", &GpuFacts::name},
    Member{"capability", &GpuFacts::capability}, Member{"memory_bytes", &GpuFacts::memory_bytes},
    Member{"partitioned", &GpuFacts::partitioned}, Member{"pcie_generation", &GpuFacts::pcie_generation},
    Member{"pcie_width", &GpuFacts::pcie_width}, Member{"pcie_generation_now", &GpuFacts::pcie_generation_now},
    Member{"pcie_width_most", &GpuFacts::pcie_width_most}, Member{"bus_id", &GpuFacts::bus_id},
    Member{"nvlinks", &GpuFacts::nvlinks});

template <>
inline constexpr auto kMembers<GpuCounters> = std::tuple(
    Member{"time_ns", &GpuCounters::time_ns}, Member{"index", &GpuCounters::index},
    Member{"utilisation", &GpuCounters::utilisation}, Member{"memory_used_bytes", &GpuCounters::memory_used_bytes},
    Member{"received_bytes_per_s", &GpuCounters::received_bytes_per_s},
    Member{"sent_bytes_per_s", &GpuCounters::sent_bytes_per_s}, Member{"power_w", &GpuCounters::power_w},
    Member{"clock_mhz", &GpuCounters::clock_mhz}, Member{"temperature_c", &GpuCounters::temperature_c},
    Member{"slowed", &GpuCounters::slowed});

template <>
inline constexpr auto kMembers<GpuProcess> = std::tuple(Member{"index", &GpuProcess::index},
                                                        Member{"pid", &GpuProcess::pid},
                                                        Member{"memory_bytes", &GpuProcess::memory_bytes});

template <>
inline constexpr auto kMembers<HostRecord> = std::tuple(
    Member{"processes", &HostRecord::processes}, Member{"host", &HostRecord::host},
    Member{"memory", &HostRecord::memory}, Member{"files", &HostRecord::files, &as_paths},
    Member{"unseen", &HostRecord::unseen}, Member{"gpus", &HostRecord::gpus}, Member{"gpu", &HostRecord::gpu},
    Member{"gpu_processes", &HostRecord::gpu_processes}, Member{"gpu_unavailable", &HostRecord::gpu_unavailable},
    Member{"gpu_notes", &HostRecord::gpu_notes}, Member{"quota_cpus", &HostRecord::quota_cpus},
    Member{"memory_limit_bytes", &HostRecord::memory_limit_bytes},
    Member{"sampler_cpu_ns", &HostRecord::sampler_cpu_ns}, Member{"period_ns", &HostRecord::period_ns});

template <>
inline constexpr auto kMembers<FileFacts> = std::tuple(Member{"path", &FileFacts::path, &as_path},
                                                       Member{"bytes", &FileFacts::bytes},
                                                       Member{"cached_bytes", &FileFacts::cached_bytes},
                                                       Member{"unwritten_bytes", &FileFacts::unwritten_bytes},
                                                       Member{"device", &FileFacts::device},
                                                       Member{"rotational", &FileFacts::rotational});

namespace {

void bind_gpus(nb::module_& module) {
  nb::class_<GpuReader>(module, "GpuReader",
                        "Reads counters of the machine's NVIDIA GPUs through NVML. Without a driver, `sample` returns "
                        "an empty list, and `unavailable` is the reason. Not thread-safe.")
      .def(nb::init<std::string>(), "library"_a = "libnvidia-ml.so.1")
      .def(
          "sample",
          [](GpuReader& self, std::uint64_t now_ns) {
            return in_python(without_gil([&] { return self.sample(now_ns); }));
          },
          "now_ns"_a, nb::sig("def sample(self, now_ns: int) -> list[dict[str, Any]]"),
          "Returns one dict per GPU; unavailable values are None. The first call opens the driver and may take "
          "seconds; later calls take about 20 ms, mostly sleeping.")
      .def(
          "processes", [](GpuReader& self) { return in_python(without_gil([&] { return self.processes(); })); },
          nb::sig("def processes(self) -> list[dict[str, Any]]"),
          "Returns the GPU's `index`, `pid` and `memory_bytes` for each process that uses a GPU.")
      .def(
          "driver", [](GpuReader& self) { return to_dict(without_gil([&] { return self.driver(); })); },
          nb::sig("def driver(self) -> dict[str, Any]"),
          "Opens the driver. Returns `is_there` (whether the driver's library is installed), its `version`, and `gpus` "
          "(the number of GPUs, or None).")
      .def(
          "gpus", [](const GpuReader& self) { return in_python(self.gpus()); },
          nb::sig("def gpus(self) -> list[dict[str, Any]]"),
          "Returns the constant properties of each GPU, once another method has opened the driver.")
      .def_prop_ro("unavailable", &GpuReader::unavailable,
                   "The reason why no data is available, with the remedy; empty if data is available.")
      .def(
          "notes", [](const GpuReader& self) { return self.notes(); }, nb::sig("def notes(self) -> list[str]"),
          "Returns a sentence for each counter that could not be read.");
}

}  // namespace

void bind_observe(nb::module_& module) {
  bind_gpus(module);
  nb::class_<EventRing>(module, "EventRing",
                        "Records events of this process in a file that remains after the process ends.")
      .def(
          "__init__",
          [](EventRing* self, const std::string& path, std::uint64_t capacity) {
            new (self) EventRing(unwrap(EventRing::create(path, capacity)));
          },
          "path"_a, "capacity"_a)
      .def(
          "record",
          [](EventRing& self, std::uint32_t kind, std::uint64_t begin_ns, std::int64_t cpu_ns, std::uint64_t a,
             std::uint64_t b, bool keep) {
            self.record(kind, begin_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(cpu_ns, 0)), a, b, keep);
          },
          "kind"_a, "begin_ns"_a, "cpu_ns"_a = 0, "a"_a = 0, "b"_a = 0, "keep"_a = true,
          "Records an event that ends now; with `keep=False`, only counts it. Treats a negative `cpu_ns` as 0.");
  module.def(
      "look_at_files",
      [](const std::vector<std::string>& paths) {
        return in_python(without_gil([&] { return look_at_files(paths); }));
      },
      "paths"_a, nb::sig("def look_at_files(paths: Sequence[str]) -> list[dict[str, Any]]"),
      "Returns size, bytes in the page cache, bytes not yet written to disk, and device of each file. Skips files that "
      "are not regular or not readable.");
  module.def(
      "read_events",
      [](const std::string& path) { return to_dict(unwrap(without_gil([&] { return read_events(path); }))); }, "path"_a,
      nb::sig("def read_events(path: str) -> dict[str, Any]"));
  nb::class_<HostSampler>(module, "HostSampler", "Samples counters of the host and of a process tree in a thread.")
      .def(
          "__init__",
          [](HostSampler* self, std::int32_t pid, double period_s, const std::string& root,
             const std::string& closely_from) {
            const auto period_ns = static_cast<std::uint64_t>(period_s > 0 ? period_s * 1e9 : 0);
            HostSamplerOptions options{.pid = pid, .period_ns = period_ns, .closely_from = closely_from, .root = root};
            new (self) HostSampler(unwrap(HostSampler::start(std::move(options))));
          },
          "pid"_a, "period_s"_a, "root"_a = "", "closely_from"_a = "")
      .def("stop", [](HostSampler& self) { without_gil([&] { self.stop(); }); })
      .def(
          "record", [](const HostSampler& self) { return to_dict(self.record()); },
          nb::sig("def record(self) -> dict[str, Any]"));
}

}  // namespace feedline::python
