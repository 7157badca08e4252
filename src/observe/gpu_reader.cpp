// SPDX-License-Identifier: Apache-2.0
#include "feedline/gpu.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "observe/nvml.h"

namespace feedline {
namespace {

using observe::Nvml;
using observe::NvmlDevice;

constexpr std::size_t kMostNotes = 32;
constexpr unsigned kNameBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE; also enough for a UUID and a version
constexpr unsigned kMostProcesses = 1024;
constexpr unsigned kSpareProcesses = 16;  // that may start between the two calls
constexpr unsigned kMostNvlinks = 18;     // NVML_NVLINK_MAX_LINKS
constexpr unsigned kStreamingClock = 1;   // NVML_CLOCK_SM
// Reasons in nvmlClocksEventReasons: power cap, hardware slowdown, software and hardware thermal slowdown, power brake.
constexpr unsigned long long kSlowing = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

struct Gpu {
  NvmlDevice device = nullptr;
  bool lost = false;
  std::set<std::string> silent;  // values that are no longer queried
  std::array<std::optional<double>, 2> pcie;
};

void describe_links(const observe::NvmlCalls& calls, NvmlDevice device, GpuFacts& facts) {
  const auto tell = [device](int (*call)(NvmlDevice, unsigned*), std::optional<std::uint32_t>& fact) {
    unsigned number = 0;
    if (call && call(device, &number) == observe::kNvmlSuccess) fact = number;
  };
  tell(calls.pcie_generation, facts.pcie_generation);
  tell(calls.pcie_width, facts.pcie_width);
  tell(calls.pcie_generation_now, facts.pcie_generation_now);
  tell(calls.pcie_width_most, facts.pcie_width_most);
  observe::NvmlPci pci;
  if (calls.pci && calls.pci(device, &pci) == observe::kNvmlSuccess)
    facts.bus_id.assign(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id));
  for (unsigned link = 0; calls.nvlink && link < kMostNvlinks; ++link) {
    unsigned up = 0;
    if (calls.nvlink(device, link, &up) != observe::kNvmlSuccess) break;  // there are no more
    facts.nvlinks = facts.nvlinks.value_or(0) + (up == 1 ? 1 : 0);
  }
}

}  // namespace

struct GpuReader::Impl {
  explicit Impl(std::string file) : library(std::move(file)) {}

  void open();
  void describe(unsigned index);
  GpuCounters counters(std::size_t at);
  void read_pcie();
  std::vector<GpuProcess> processes_of(std::size_t at);
  void note(const std::string& text) {
    if (notes.size() < kMostNotes) notes.push_back(text);
  }

  // Returns the value that `call` stores in a T. After a failure, the call is not repeated.
  template <typename T, typename Call, typename... Arguments>
  std::optional<T> ask(std::size_t at, const std::string& what, Call call, Arguments... arguments) {
    Gpu& gpu = states[at];
    if (gpu.lost || gpu.silent.contains(what)) return std::nullopt;
    T value{};
    const int status = call ? call(gpu.device, arguments..., &value) : observe::kNvmlNotSupported;
    if (status == observe::kNvmlSuccess) return value;
    refused(at, what, call != nullptr, status);
    return std::nullopt;
  }

  void refused(std::size_t at, const std::string& what, bool exists, int status) {
    const std::string name = "GPU " + std::to_string(gpus[at].index);
    states[at].silent.insert(what);
    if (status == observe::kNvmlGpuIsLost) {
      states[at].lost = true;
      note(name + " was lost: " + nvml->words(status) + "; see dmesg (Xid) for the cause");
    } else if (gpus[at].partitioned) {
      note(name + " is divided by MIG: its " + what + " is unavailable");
    } else {
      note(name + ": its " + what +
           " is unavailable: " + (exists ? nvml->words(status) : "the driver does not have this function"));
    }
  }

  std::string library;
  bool opened = false;
  GpuDriver driver;
  std::optional<Nvml> nvml;
  std::string unavailable;
  std::vector<std::string> notes;
  std::vector<GpuFacts> gpus;
  std::vector<Gpu> states;  // parallel to `gpus`
  std::size_t turn = 0;     // the next GPU and direction to read PCIe of
};

void GpuReader::Impl::open() {
  opened = true;
  auto found = Nvml::open(library);
  driver.is_there = found || found.error().is_there;
  if (!found) {
    unavailable = found.error().why;
    return;
  }
  nvml.emplace(std::move(*found));
  std::array<char, kNameBytes + 1> version{};
  const auto driver_version = nvml->calls().driver_version;
  if (driver_version && driver_version(version.data(), kNameBytes) == observe::kNvmlSuccess)
    driver.version = version.data();
  unsigned count = 0;
  if (const int status = nvml->calls().count(&count); status != observe::kNvmlSuccess) {
    unavailable = "NVML cannot count the GPUs: " + nvml->words(status);
    return;
  }
  driver.gpus = count;
  for (unsigned index = 0; index < count; ++index) describe(index);
  if (gpus.empty()) unavailable = "NVML reports no GPU that this user may use";
}

void GpuReader::Impl::describe(unsigned index) {
  const auto& calls = nvml->calls();
  Gpu gpu;
  if (const int status = calls.handle(index, &gpu.device); status != observe::kNvmlSuccess) {
    note("GPU " + std::to_string(index) + " cannot be queried: " + nvml->words(status));
    return;
  }
  GpuFacts facts{.index = index};
  std::array<char, kNameBytes + 1> text{};  // one more: a library may fill the whole buffer
  if (calls.name && calls.name(gpu.device, text.data(), kNameBytes) == observe::kNvmlSuccess) facts.name = text.data();
  text.fill('\0');
  if (calls.uuid && calls.uuid(gpu.device, text.data(), kNameBytes) == observe::kNvmlSuccess) facts.uuid = text.data();
  int major = 0, minor = 0;
  if (calls.capability && calls.capability(gpu.device, &major, &minor) == observe::kNvmlSuccess && major > 0)
    facts.capability = static_cast<std::uint32_t>(10 * major + minor);
  unsigned current = 0, pending = 0;
  if (calls.mig && calls.mig(gpu.device, &current, &pending) == observe::kNvmlSuccess) facts.partitioned = current == 1;
  observe::NvmlMemory memory;
  if (calls.memory && calls.memory(gpu.device, &memory) == observe::kNvmlSuccess) facts.memory_bytes = memory.total;
  describe_links(calls, gpu.device, facts);
  gpus.push_back(std::move(facts));
  states.push_back(std::move(gpu));
}

GpuCounters GpuReader::Impl::counters(std::size_t at) {
  const auto& calls = nvml->calls();
  GpuCounters found{.index = gpus[at].index};
  if (const auto rates = ask<observe::NvmlUtilisation>(at, "utilisation", calls.utilisation))
    found.utilisation = std::min(rates->gpu, 100u) / 100.0;
  if (const auto memory = ask<observe::NvmlMemory>(at, "memory", calls.memory)) found.memory_used_bytes = memory->used;
  if (const auto milliwatts = ask<unsigned>(at, "power", calls.power)) found.power_w = *milliwatts / 1000.0;
  found.clock_mhz = ask<unsigned>(at, "clock", calls.clock, static_cast<int>(kStreamingClock));
  found.temperature_c = ask<unsigned>(at, "temperature", calls.temperature, 0);
  if (const auto reasons = ask<unsigned long long>(at, "clock's reasons", calls.clock_reasons))
    found.slowed = (*reasons & kSlowing) != 0;
  found.sent_bytes_per_s = states[at].pcie[observe::kNvmlSent];
  found.received_bytes_per_s = states[at].pcie[observe::kNvmlReceived];
  return found;
}

// Reads one GPU and one direction per sample, because each read takes the driver 20 ms.
void GpuReader::Impl::read_pcie() {
  const std::size_t at = turn / 2;
  const auto direction = turn % 2 == 0 ? observe::kNvmlReceived : observe::kNvmlSent;
  turn = (turn + 1) % (2 * states.size());
  const auto kilobytes = ask<unsigned>(at, "PCIe throughput", nvml->calls().pcie, static_cast<int>(direction));
  states[at].pcie[direction] = kilobytes ? std::optional(*kilobytes * 1000.0) : std::nullopt;
}

std::vector<GpuProcess> GpuReader::Impl::processes_of(std::size_t at) {
  const auto list = [&]<typename Row>(int (*call)(NvmlDevice, unsigned*, Row*)) {
    std::vector<Row> rows(kSpareProcesses);
    unsigned count = kSpareProcesses;
    int status = call(states[at].device, &count, rows.data());
    if (status == observe::kNvmlInsufficientSize) {
      rows.resize(std::min(count, kMostProcesses) + kSpareProcesses);
      count = static_cast<unsigned>(rows.size());
      status = call(states[at].device, &count, rows.data());
    }
    std::vector<GpuProcess> found;
    if (status != observe::kNvmlSuccess) refused(at, "list of processes", true, status), count = 0;
    for (const Row& row : std::span(rows).first(std::min<std::size_t>(count, rows.size()))) {
      GpuProcess process{.index = gpus[at].index, .pid = static_cast<std::int32_t>(row.pid)};
      if (row.used_memory != ~0ull) process.memory_bytes = row.used_memory;  // all ones: NVML_VALUE_NOT_AVAILABLE
      found.push_back(process);
    }
    return found;
  };
  const auto& calls = nvml->calls();
  if (states[at].lost || states[at].silent.contains("list of processes")) return {};
  if (calls.processes) return list(calls.processes);
  if (calls.processes_before_11) return list(calls.processes_before_11);
  refused(at, "list of processes", false, observe::kNvmlNotSupported);
  return {};
}

GpuReader::GpuReader(std::string library) : impl_(std::make_unique<Impl>(std::move(library))) {}
GpuReader::~GpuReader() = default;
GpuReader::GpuReader(GpuReader&&) noexcept = default;
GpuReader& GpuReader::operator=(GpuReader&&) noexcept = default;

std::vector<GpuCounters> GpuReader::sample(std::uint64_t now_ns) {
  if (!impl_->opened) impl_->open();
  std::vector<GpuCounters> rows;
  if (impl_->gpus.empty()) return rows;
  impl_->read_pcie();
  for (std::size_t at = 0; at < impl_->gpus.size(); ++at) {
    rows.push_back(impl_->counters(at));
    rows.back().time_ns = now_ns;
  }
  return rows;
}

std::vector<GpuProcess> GpuReader::processes() {
  if (!impl_->opened) impl_->open();
  std::vector<GpuProcess> found;
  for (std::size_t at = 0; at < impl_->gpus.size(); ++at)
    for (const GpuProcess& process : impl_->processes_of(at)) found.push_back(process);
  return found;
}

const GpuDriver& GpuReader::driver() {
  if (!impl_->opened) impl_->open();
  return impl_->driver;
}

const std::vector<GpuFacts>& GpuReader::gpus() const { return impl_->gpus; }
const std::string& GpuReader::unavailable() const { return impl_->unavailable; }
const std::vector<std::string>& GpuReader::notes() const { return impl_->notes; }

}  // namespace feedline
