// SPDX-License-Identifier: Apache-2.0
#include "feedline/observe.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
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

nb::dict as_dict(const TreeMemory& memory) {
  nb::dict dict;
  dict["time_ns"] = memory.time_ns;
  dict["bytes"] = memory.bytes;
  dict["exact"] = memory.exact;
  return dict;
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
  nb::list processes, host, memory, files, unseen;
  for (const auto& row : record.processes) processes.append(as_dict(row));
  for (const auto& row : record.host) host.append(as_dict(row));
  for (const auto& row : record.memory) memory.append(as_dict(row));
  for (const auto& path : record.files) files.append(as_path(path));
  for (const auto& sentence : record.unseen) unseen.append(nb::str(sentence.c_str()));
  nb::dict dict;
  dict["processes"] = processes;
  dict["host"] = host;
  dict["memory"] = memory;
  dict["files"] = files;
  dict["unseen"] = unseen;
  dict["quota_cpus"] = or_none(record.quota_cpus);
  dict["memory_limit_bytes"] = or_none(record.memory_limit_bytes);
  dict["sampler_cpu_ns"] = record.sampler_cpu_ns;
  dict["period_ns"] = record.period_ns;
  return dict;
}

}  // namespace

void bind_observe(nb::module_& module) {
  nb::class_<EventRing>(module, "EventRing", "Events of this process, in a file that outlives it.")
      .def(
          "__init__",
          [](EventRing* self, const std::string& path, std::uint64_t capacity) {
            new (self) EventRing(unwrap(EventRing::create(path, capacity)));
          },
          "path"_a, "capacity"_a)
      .def("record", &EventRing::record, "kind"_a, "begin_ns"_a, "cpu_ns"_a, "a"_a, "b"_a, "keep"_a,
           "An event that ends now; `keep` False: it is only counted.");
  module.def(
      "look_at_files", &facts_of, "paths"_a, nb::sig("def look_at_files(paths: Sequence[str]) -> list[dict[str, Any]]"),
      "Size, bytes in the page cache, bytes not yet written and disk of each; what is no readable file is left out.");
  module.def("read_events", &events_of, "path"_a, nb::sig("def read_events(path: str) -> dict[str, Any]"));
  nb::class_<HostSampler>(module, "HostSampler", "Counters of the host and of a process tree, taken by a thread.")
      .def(
          "__init__",
          [](HostSampler* self, std::int32_t pid, double period_s, const std::string& root) {
            const auto period_ns = static_cast<std::uint64_t>(period_s > 0 ? period_s * 1e9 : 0);
            new (self) HostSampler(unwrap(HostSampler::start({pid, period_ns, root})));
          },
          "pid"_a, "period_s"_a, "root"_a = "")
      .def("stop", [](HostSampler& self) { without_gil([&] { self.stop(); }); })
      .def("record", &record_of, nb::sig("def record(self) -> dict[str, Any]"));
}

}  // namespace feedline::python
