// SPDX-License-Identifier: Apache-2.0
#include "feedline/observe.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "gil.h"
#include "subjects.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

nb::tuple as_tuple(const Event& event) {
  return nb::make_tuple(event.kind, event.thread, event.begin_ns, event.wall_ns, event.cpu_ns, event.a, event.b);
}

nb::dict as_dict(const EventTotals& totals) {
  nb::list wall;
  for (const std::uint64_t count : totals.wall) wall.append(count);
  nb::dict dict;
  dict["count"] = totals.count;
  dict["wall_ns"] = totals.wall_ns;
  dict["cpu_ns"] = totals.cpu_ns;
  dict["longest_ns"] = totals.longest_ns;
  dict["a"] = totals.a;
  dict["wall"] = wall;
  return dict;
}

nb::dict events_of(const std::string& path) {
  const RecordedEvents recorded = unwrap(without_gil([&] { return read_events(path); }));
  nb::list events;
  for (const Event& event : recorded.events) events.append(as_tuple(event));
  nb::dict totals;
  for (int kind = 0; kind < kEventKinds; ++kind)
    if (const auto& one = recorded.totals[static_cast<std::size_t>(kind)]; one.count > 0)
      totals[nb::int_(kind)] = as_dict(one);
  nb::dict dict;
  dict["pid"] = recorded.pid;
  dict["parent"] = recorded.parent;
  dict["created_ns"] = recorded.created_ns;
  dict["written"] = recorded.written;
  dict["events"] = events;
  dict["totals"] = totals;
  return dict;
}

nb::dict as_dict(const ProcessCounters& counters) {
  nb::dict dict;
  dict["time_ns"] = counters.time_ns;
  dict["pid"] = counters.pid;
  dict["parent"] = counters.parent;
  dict["cpu_ns"] = counters.cpu_ns;
  dict["system_ns"] = counters.system_ns;
  dict["delay_ns"] = counters.delay_ns;
  dict["device_bytes"] = counters.device_bytes;
  dict["read_bytes"] = counters.read_bytes;
  dict["read_calls"] = counters.read_calls;
  dict["minor_faults"] = counters.minor_faults;
  dict["major_faults"] = counters.major_faults;
  dict["resident_bytes"] = counters.resident_bytes;
  dict["threads"] = counters.threads;
  return dict;
}

// As os.fsdecode() has it: a name need not be UTF-8.
nb::object as_path(const std::string& path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

template <typename T>
nb::object or_none(const std::optional<T>& value) {
  return value ? nb::cast(*value) : nb::none();
}

nb::dict as_dict(const HostCounters& counters) {
  nb::dict dict;
  dict["time_ns"] = counters.time_ns;
  dict["busy_ns"] = counters.busy_ns;
  dict["throttled_ns"] = or_none(counters.throttled_ns);
  dict["cpu_pressure_ns"] = or_none(counters.cpu_pressure_ns);
  dict["io_pressure_ns"] = or_none(counters.io_pressure_ns);
  dict["memory_pressure_ns"] = or_none(counters.memory_pressure_ns);
  dict["memory_events"] = or_none(counters.memory_events);
  dict["available_bytes"] = counters.available_bytes;
  dict["swapped_pages"] = counters.swapped_pages;
  dict["disk_reads"] = counters.disk_reads;
  dict["disk_bytes"] = counters.disk_bytes;
  dict["disk_read_ns"] = counters.disk_read_ns;
  dict["shared_memory_used"] = or_none(counters.shared_memory_used);
  return dict;
}

nb::dict as_dict(const GpuFacts& facts) {
  nb::dict dict;
  dict["index"] = facts.index;
  dict["uuid"] = facts.uuid;
  dict["name"] = facts.name;
  dict["capability"] = or_none(facts.capability);
  dict["memory_bytes"] = facts.memory_bytes;
  dict["partitioned"] = facts.partitioned;
  return dict;
}

nb::dict as_dict(const GpuCounters& counters) {
  nb::dict dict;
  dict["time_ns"] = counters.time_ns;
  dict["index"] = counters.index;
  dict["utilisation"] = or_none(counters.utilisation);
  dict["memory_used_bytes"] = or_none(counters.memory_used_bytes);
  dict["received_bytes_per_s"] = or_none(counters.received_bytes_per_s);
  dict["sent_bytes_per_s"] = or_none(counters.sent_bytes_per_s);
  dict["power_w"] = or_none(counters.power_w);
  dict["clock_mhz"] = or_none(counters.clock_mhz);
  dict["temperature_c"] = or_none(counters.temperature_c);
  dict["slowed"] = or_none(counters.slowed);
  return dict;
}

nb::dict as_dict(const GpuProcess& process) {
  nb::dict dict;
  dict["index"] = process.index;
  dict["pid"] = process.pid;
  dict["memory_bytes"] = or_none(process.memory_bytes);
  return dict;
}

nb::dict as_dict(const TreeMemory& memory) {
  nb::dict dict;
  dict["time_ns"] = memory.time_ns;
  dict["bytes"] = memory.bytes;
  dict["exact"] = memory.exact;
  return dict;
}

template <typename Row>
nb::list as_list(const std::vector<Row>& rows) {
  nb::list list;
  for (const Row& row : rows) list.append(as_dict(row));
  return list;
}

nb::list sentences(const std::vector<std::string>& notes) {
  nb::list list;
  for (const std::string& note : notes) list.append(nb::str(note.c_str()));
  return list;
}

nb::list facts_of(const std::vector<std::string>& paths) {
  nb::list found;
  for (const FileFacts& facts : without_gil([&] { return look_at_files(paths); })) {
    nb::dict dict;
    dict["path"] = as_path(facts.path);
    dict["bytes"] = facts.bytes;
    dict["cached_bytes"] = or_none(facts.cached_bytes);
    dict["unwritten_bytes"] = or_none(facts.unwritten_bytes);
    dict["device"] = facts.device;
    dict["rotational"] = or_none(facts.rotational);
    found.append(dict);
  }
  return found;
}

nb::dict record_of(const HostSampler& sampler) {
  const HostRecord record = sampler.record();
  nb::dict dict;
  dict["processes"] = as_list(record.processes);
  dict["host"] = as_list(record.host);
  dict["memory"] = as_list(record.memory);
  nb::list files;
  for (const auto& path : record.files) files.append(as_path(path));
  dict["files"] = files;
  dict["unseen"] = sentences(record.unseen);
  dict["gpus"] = as_list(record.gpus);
  dict["gpu"] = as_list(record.gpu);
  dict["gpu_processes"] = as_list(record.gpu_processes);
  dict["gpu_unavailable"] = record.gpu_unavailable;
  dict["gpu_notes"] = sentences(record.gpu_notes);
  dict["quota_cpus"] = or_none(record.quota_cpus);
  dict["memory_limit_bytes"] = or_none(record.memory_limit_bytes);
  dict["sampler_cpu_ns"] = record.sampler_cpu_ns;
  dict["period_ns"] = record.period_ns;
  return dict;
}

void bind_gpus(nb::module_& module) {
  nb::class_<GpuReader>(module, "GpuReader",
                        "The machine's NVIDIA GPUs, through the driver's NVML. Without one it gives nothing, and "
                        "`unavailable` says why. For one thread at a time.")
      .def(nb::init<std::string>(), "library"_a = "libnvidia-ml.so.1")
      .def(
          "sample",
          [](GpuReader& self, std::uint64_t now_ns) {
            return as_list(without_gil([&] { return self.sample(now_ns); }));
          },
          "now_ns"_a, nb::sig("def sample(self, now_ns: int) -> list[dict[str, Any]]"),
          "A row per GPU; what is not told is None. The first call opens the driver and may take seconds, later ones "
          "take 20 ms, asleep.")
      .def(
          "processes", [](GpuReader& self) { return as_list(without_gil([&] { return self.processes(); })); },
          nb::sig("def processes(self) -> list[dict[str, Any]]"), "`index` of a GPU, `pid`, `memory_bytes`.")
      .def(
          "gpus", [](const GpuReader& self) { return as_list(self.gpus()); },
          nb::sig("def gpus(self) -> list[dict[str, Any]]"), "What does not change; after the first sample.")
      .def_prop_ro("unavailable", &GpuReader::unavailable, "Why there is nothing at all, and what to do; else empty.")
      .def(
          "notes", [](const GpuReader& self) { return sentences(self.notes()); },
          nb::sig("def notes(self) -> list[str]"), "What could not be read, one sentence each.");
}

}  // namespace

void bind_observe(nb::module_& module) {
  bind_gpus(module);
  nb::class_<EventRing>(module, "EventRing", "Events of this process, in a file that outlives it.")
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
          "An event that ends now; `keep` False: it is only counted. A `cpu_ns` below 0 counts as 0.");
  module.def(
      "look_at_files", &facts_of, "paths"_a, nb::sig("def look_at_files(paths: Sequence[str]) -> list[dict[str, Any]]"),
      "Size, bytes in the page cache, bytes not yet written and disk of each; what is no readable file is left out.");
  module.def("read_events", &events_of, "path"_a, nb::sig("def read_events(path: str) -> dict[str, Any]"));
  nb::class_<HostSampler>(module, "HostSampler", "Counters of the host and of a process tree, taken by a thread.")
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
      .def("record", &record_of, nb::sig("def record(self) -> dict[str, Any]"));
}

}  // namespace feedline::python
