// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data sources of `feedline diagnose`: events that a training script's processes write to shared memory, and the
// host's counters for the script's process tree. Neither source needs privileges or can interrupt the script.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "feedline/gpu.h"

namespace feedline {

inline constexpr int kEventKinds = 48;
inline constexpr int kEventBuckets =
    40;  // bucket b counts [2^b, 2^(b+1)) ns; bucket 0 includes 0, and the last one all longer times

// A timed event. The program that records events defines the kinds and the meaning of a and b.
struct Event {
  std::uint64_t begin_ns = 0;  // CLOCK_MONOTONIC, the same for all processes of a machine
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;  // of the thread
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint32_t thread = 0;
  std::uint32_t kind = 0;
};

struct EventTotals {
  std::uint64_t count = 0;
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t longest_ns = 0;
  std::uint64_t a = 0;  // total
  std::array<std::uint64_t, kEventBuckets> wall{};
};

// The events of one process: a ring of the latest events, and totals of all events. The events are stored in a
// memory-mapped file, which remains even if the process is killed. Any thread may record events; recording does not
// allocate memory or acquire locks.
class EventRing {
 public:
  // Creates the file, which must not exist, for `capacity` events. Fails with kConfig if the capacity is not a power of
  // two, and with kStorage if the file cannot be created.
  static Result<EventRing> create(const std::string& path, std::uint64_t capacity);
  ~EventRing();
  EventRing(EventRing&&) noexcept;
  EventRing& operator=(EventRing&&) noexcept;

  // Records an event that ends now, unless kind >= kEventKinds. If `keep` is false, updates only the totals.
  void record(std::uint32_t kind, std::uint64_t begin_ns, std::uint64_t cpu_ns, std::uint64_t a, std::uint64_t b,
              bool keep);

 private:
  struct Impl;
  explicit EventRing(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct RecordedEvents {
  std::int32_t pid = 0;
  std::int32_t parent = 0;  // the process that created the file
  std::uint64_t created_ns = 0;
  std::uint64_t written = 0;  // events stored or overwritten since
  std::vector<Event> events;  // in recording order
  std::array<EventTotals, kEventKinds> totals{};
};

// Reads a ring file, even while it is being written. Fails with kStorage if the file cannot be read, and with kData if
// it is not a ring file.
Result<RecordedEvents> read_events(const std::string& path);

// Counters of one process at one time. All counters except memory and threads only increase.
struct ProcessCounters {
  std::uint64_t time_ns = 0;
  std::int32_t pid = 0;
  std::int32_t parent = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t system_ns = 0;     // the part of cpu time spent in the kernel: reads, page faults, page reclaim
  std::uint64_t delay_ns = 0;      // ready to run but not running
  std::uint64_t device_bytes = 0;  // read from block devices; 0 if not permitted
  std::uint64_t read_bytes = 0;    // read by read() and related calls, including from the page cache
  std::uint64_t read_calls = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t threads = 0;
};

// Counters of the machine and of the watched process's cgroup at one time. Counters that the system does not provide
// are nullopt.
struct HostCounters {
  std::uint64_t time_ns = 0;
  std::uint64_t busy_ns = 0;  // of all CPUs
  std::optional<std::uint64_t> throttled_ns;
  std::optional<std::uint64_t> cpu_pressure_ns;  // the "some" line in /proc/pressure or of the cgroup
  std::optional<std::uint64_t> io_pressure_ns;
  std::optional<std::uint64_t> memory_pressure_ns;
  std::optional<std::uint64_t> memory_events;  // number of times that the cgroup reached its limit
  std::uint64_t available_bytes = 0;           // of memory
  std::uint64_t swapped_pages = 0;             // pages swapped in and out since boot
  std::uint64_t disk_reads = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_read_ns = 0;            // summed over requests
  std::optional<double> shared_memory_used;  // share of the watched process's /dev/shm
};

// Memory use of the process tree at one time. Sampled rarely, because the kernel has to visit all pages of the
// processes.
struct TreeMemory {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;  // a page that n processes share counts 1/n for each
  bool exact = true;        // false: only private pages of some processes are visible
};

struct HostRecord {
  std::vector<ProcessCounters> processes;  // in chronological order
  std::vector<HostCounters> host;
  std::vector<TreeMemory> memory;
  std::vector<std::string>
      files;  // files that the tree had open for reading in two samples a second apart, a few hundred at most
  std::vector<std::string> unseen;  // counters that could not be read, one sentence each
  std::vector<GpuFacts> gpus;
  std::vector<GpuCounters> gpu;           // in chronological order
  std::vector<GpuProcess> gpu_processes;  // all processes ever seen
  std::string gpu_unavailable;            // the reason if no GPU data is available; otherwise empty
  std::vector<std::string> gpu_notes;
  std::optional<double> quota_cpus;
  std::optional<double> memory_limit_bytes;
  std::uint64_t sampler_cpu_ns = 0;  // total CPU time of the sampling thread
  std::uint64_t period_ns = 0;       // final interval between samples
};

// One file of a dataset.
struct FileFacts {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> cached_bytes;     // in the page cache; nullopt: not available to this user
  std::optional<std::uint64_t> unwritten_bytes;  // the part of them not yet written to the device
  std::string device;                            // name of the whole disk, such as nvme0n1; empty if not a local disk
  std::optional<bool> rotational;
};

// Returns facts about the files without reading their contents. Skips files that cannot be opened or are not regular.
std::vector<FileFacts> look_at_files(const std::vector<std::string>& paths);

struct HostSamplerOptions {
  std::int32_t pid = 0;  // this process and all its descendants
  std::uint64_t period_ns = 100'000'000;
  std::string closely_from;                       // a file whose creation starts sampling; empty: sampling starts
                                                  // immediately
  std::string root;                               // the location of /proc and /sys; for tests
  std::string gpu_library = "libnvidia-ml.so.1";  // empty: GPUs are not sampled
};

// A thread that samples the counters until it is stopped. To limit its memory use, the thread drops some of the old
// samples over time and lowers its sampling rate. The thread also lowers the rate if sampling would use more than 1/800
// of one CPU.
class HostSampler {
 public:
  static Result<HostSampler> start(HostSamplerOptions options);
  ~HostSampler();
  HostSampler(HostSampler&&) noexcept;
  HostSampler& operator=(HostSampler&&) noexcept;

  void stop();
  HostRecord record() const;

 private:
  struct Impl;
  explicit HostSampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline
