// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads counters of the machine's NVIDIA GPUs from the driver's management library (NVML). Loads the library at run
// time, needs no privileges and creates no CUDA context.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace feedline {

struct GpuDriver {
  bool is_there = false;               // whether the library is installed, even if it does not work
  std::optional<std::string> version;  // such as "570.86.15"
  std::optional<std::uint32_t> gpus;   // GPUs of the machine, including those that cannot be queried
};

struct GpuFacts {
  std::uint32_t index = 0;  // NVML's index: all of the machine's GPUs in bus order, regardless of CUDA_VISIBLE_DEVICES
  std::string uuid;         // "GPU-..."
  std::string name;
  std::optional<std::uint32_t> capability;  // 10 * major + minor: 80 for an A100
  std::uint64_t memory_bytes = 0;
  bool partitioned = false;                          // MIG: NVML's counters for the whole GPU do not describe a
                                                     // partition
  std::optional<std::uint32_t> pcie_generation;      // the highest generation that both GPU and system support
  std::optional<std::uint32_t> pcie_width;           // current number of lanes
  std::optional<std::uint32_t> pcie_generation_now;  // current generation, which an idle GPU may have lowered
  std::optional<std::uint32_t> pcie_width_most;      // number of lanes that both GPU and system support
  std::string bus_id;                                // PCI address in NVML's notation: "00000000:3B:00.0"
  std::optional<std::uint32_t> nvlinks;              // active NVLink links; nullopt if this GPU has none
};

// The state of one GPU at one time. Values that the driver does not provide for this GPU or user are nullopt.
struct GpuCounters {
  std::uint64_t time_ns = 0;
  std::uint32_t index = 0;
  // The fraction of the driver's last sampling window (1/6 s to 1 s) in which at least one kernel ran, even if the
  // kernel used only a small part of the GPU.
  std::optional<double> utilisation;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<double> received_bytes_per_s;  // over PCIe, within 20 ms; GPUs are read in rotation, so the value may
                                               // be some samples old
  std::optional<double> sent_bytes_per_s;
  std::optional<double> power_w;
  std::optional<std::uint32_t> clock_mhz;  // of the multiprocessors
  std::optional<std::uint32_t> temperature_c;
  std::optional<bool> slowed;  // clocks throttled by power or heat
};

// A process that uses a GPU for computation. In a container without the host's PID namespace, NVML returns an empty
// list or PIDs of a different namespace.
struct GpuProcess {
  std::uint32_t index = 0;
  std::int32_t pid = 0;
  std::optional<std::uint64_t> memory_bytes;
};

// Not thread-safe. If the library, a GPU or a query fails, a note is added and the failing part is not queried again.
class GpuReader {
 public:
  explicit GpuReader(std::string library = "libnvidia-ml.so.1");
  ~GpuReader();
  GpuReader(GpuReader&&) noexcept;
  GpuReader& operator=(GpuReader&&) noexcept;

  // The first call opens the library, which may take seconds if the driver has to wake a GPU. Later calls take a
  // millisecond per GPU, plus 20 ms while the driver measures PCIe traffic.
  std::vector<GpuCounters> sample(std::uint64_t now_ns);
  std::vector<GpuProcess> processes();
  const GpuDriver& driver();  // loads the library, like the first sample(), without sampling

  // Valid after any call to sample(), processes() or driver().
  const std::vector<GpuFacts>& gpus() const;
  const std::string& unavailable() const;  // the reason if no data is available; otherwise empty
  const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline
