// SPDX-License-Identifier: Apache-2.0
// One thread samples; record() copies under the same lock that protects storing a sample, so neither waits for the
// other's file reads.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/cpu_clock.h"
#include "base/thread.h"
#include "feedline/observe.h"
#include "observe/allowance.h"
#include "observe/host.h"
#include "observe/process_tree.h"

namespace feedline {
namespace {

constexpr std::size_t kHostRows = 2048;       // 3.4 minutes at ten per second, then at half the rate for twice as long
constexpr std::size_t kProcessRows = 65536;   // 6 MB
constexpr std::uint64_t kCostShare = 800;     // samples may take 1/800 of the time of one CPU
constexpr std::uint64_t kFreeNs = 1'500'000;  // the first one opens all files, and may traverse all processes
constexpr std::uint64_t kLongestPeriodNs = 60'000'000'000;
constexpr std::uint64_t kLongestPollNs = 100'000'000;  // for the start of the loop
constexpr std::uint64_t kFindPeriodNs = 500'000'000;   // before that: for new processes
constexpr std::size_t kGpuRows = 16384;                // 2 MB
constexpr std::size_t kGpuProcesses = 1024;
constexpr std::uint64_t kGpuPeriodNs = 250'000'000;  // the driver's values are means over about as long
constexpr std::uint64_t kGpuProcessesPeriod = 4;     // in samples of GPUs
constexpr std::uint64_t kRarePeriodNs = 1'000'000'000;
constexpr std::uint64_t kFirstRareNs = 500'000'000;  // not useful for shorter loops
// Traversing a process's pages blocks its changes to them, so the pages are traversed less often than plain counters
// are read.
constexpr std::uint64_t kRareCostShare = 4000;
constexpr std::uint64_t kFreeRareNs = 1'000'000;        // open files, and pages of small processes
constexpr std::uint64_t kFreeNearLimitNs = 20'000'000;  // pages of large ones, if memory may be short
constexpr double kNearLimit = 0.5;                      // of the cgroup's memory
constexpr std::size_t kMemoryRows = 1024;
constexpr std::size_t kFiles = 256;

// Drops every second sampling time, except for the first one and the last one, which has the totals.
template <typename Row>
void thin(std::vector<Row>& rows) {
  if (rows.empty()) return;
  const std::uint64_t last = rows.back().time_ns;
  std::uint64_t time = rows.front().time_ns;
  bool keep = true;
  std::erase_if(rows, [&](const Row& row) {
    if (row.time_ns != time) {
      time = row.time_ns;
      keep = !keep;
    }
    return !keep && row.time_ns != last;
  });
}

}  // namespace

struct HostSampler::Impl {
  explicit Impl(const HostSamplerOptions& options)
      : tree(options.root, options.pid),
        host(options.root, options.pid),
        gpus(options.gpu_library),
        gpus_wanted(!options.gpu_library.empty()),
        closely_from(options.closely_from),
        period_ns(options.period_ns) {}

  // Stops sampling but retains the samples so far; record() reports the error.
  void lose(Error error) {
    const std::lock_guard lock(mutex);
    lost = std::move(error);
  }

  void run() {
    observe::Allowance samples{.began_ns = base::now_ns(), .free_ns = kFreeNs, .share = kCostShare};
    sample_gpus();  // opens the driver, which may take seconds
    std::unique_lock lock(mutex);
    wait_for_begin(lock, samples);
    rare_due_ns = base::now_ns() + kFirstRareNs;
    while (!stopping) {
      lock.unlock();
      const std::uint64_t now = base::now_ns(), before = base::thread_cpu_ns();
      const auto processes = tree.sample(now);
      const HostCounters counters = host.sample(now);
      samples.spent_ns += base::thread_cpu_ns() - before;
      if (now >= rare_due_ns) look_rarely(now);
      lock.lock();
      collected.processes.insert(collected.processes.end(), processes.begin(), processes.end());
      collected.host.push_back(counters);
      while (collected.host.size() > kHostRows || collected.processes.size() > kProcessRows) slow_down();
      lock.unlock();
      sample_gpus();
      lock.lock();
      collected.sampler_cpu_ns = base::thread_cpu_ns();
      if (stopping) break;
      // samples must not disturb what they measure
      wait(lock, std::max(period_ns, samples.owed_ns(base::now_ns())));
    }
  }

  // Counters from before the beginning are not used. Until the beginning, the sampler only searches for new processes,
  // because a process whose parent has exited cannot be found later.
  void wait_for_begin(std::unique_lock<std::mutex>& lock, observe::Allowance& samples) {
    std::uint64_t find_due_ns = base::now_ns() + kFindPeriodNs;
    while (!stopping && !has_begun()) {
      wait(lock, std::min(period_ns, kLongestPollNs));
      if (base::now_ns() < find_due_ns || stopping) continue;
      lock.unlock();
      const std::uint64_t before = base::thread_cpu_ns();
      tree.find();
      samples.spent_ns += base::thread_cpu_ns() - before;
      find_due_ns = base::now_ns() + std::max(kFindPeriodNs, samples.owed_ns(base::now_ns()));
      lock.lock();
      collected.sampler_cpu_ns = base::thread_cpu_ns();
    }
  }

  void wait(std::unique_lock<std::mutex>& lock, std::uint64_t ns) {
    wake.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return stopping; });
  }

  bool has_begun() {
    if (!closely_from.empty() && ::access(closely_from.c_str(), F_OK) == 0) closely_from.clear();
    return closely_from.empty();
  }

  // GPUs are sampled at a separate interval, because sampling one may cost more than reading all of /proc. The first
  // sample also opens the driver. This one-time cost is not charged to the budget, because the next sample would
  // otherwise be taken after a short loop has ended.
  void sample_gpus() {
    const std::uint64_t now = base::now_ns(), before = base::thread_cpu_ns();
    if (!gpus_wanted || now < gpus_due_ns) return;
    const std::vector<GpuCounters> rows = gpus.sample(now);
    const bool listing = gpu_samples++ % kGpuProcessesPeriod == 0;
    const std::vector<GpuProcess> processes = listing ? gpus.processes() : std::vector<GpuProcess>();
    const std::uint64_t cost = base::thread_cpu_ns() - before;
    gpus_wanted = gpus.unavailable().empty();  // only opened it
    const std::uint64_t owed = gpu_samples == 1 ? 0 : cost * kCostShare;
    gpus_due_ns = now + std::min(std::max(kGpuPeriodNs, owed), kLongestPeriodNs);
    const std::lock_guard lock(mutex);
    collected.gpus = gpus.gpus();
    collected.gpu_unavailable = gpus.unavailable();
    collected.gpu_notes = gpus.notes();
    collected.gpu.insert(collected.gpu.end(), rows.begin(), rows.end());
    while (collected.gpu.size() > kGpuRows) thin(collected.gpu);
    for (const GpuProcess& process : processes) remember(process);
  }

  void remember(const GpuProcess& process) {
    const auto same = [&](const GpuProcess& known) { return known.pid == process.pid && known.index == process.index; };
    const auto known = std::ranges::find_if(collected.gpu_processes, same);
    if (known != collected.gpu_processes.end())
      *known = process;
    else if (collected.gpu_processes.size() < kGpuProcesses)
      collected.gpu_processes.push_back(process);
  }

  // Takes the measurements that are more expensive than reading a few small files. Only the sampling thread uses the
  // files until it has ended.
  void look_rarely(std::uint64_t now) {
    const std::uint64_t before = base::thread_cpu_ns();
    if (is_near_limit()) rare_looks.free_ns = kFreeNearLimitNs;
    const std::optional<TreeMemory> memory = tree.memory(now, rare_looks.left_ns(now));
    std::set<std::string> open;
    tree.add_open_files(open, kFiles);
    for (const std::string& path : open)
      if (files.size() < kFiles || files.contains(path)) ++files[path];
    rare_looks.spent_ns += base::thread_cpu_ns() - before;
    rare_due_ns = now + std::max(rare_period_ns, rare_looks.owed_ns(now));
    if (!memory) return;
    const std::lock_guard lock(mutex);
    collected.memory.push_back(*memory);
    if (collected.memory.size() <= kMemoryRows) return;
    thin(collected.memory);
    rare_period_ns = std::min(2 * rare_period_ns, kLongestPeriodNs);
  }

  // Uses the resident sizes of the last sample, in which shared memory counts in each process.
  bool is_near_limit() const {
    const std::optional<double> limit = collected.memory_limit_bytes;  // does not change
    return limit && static_cast<double>(tree.resident_bytes()) > kNearLimit * *limit;
  }

  void slow_down() {
    thin(collected.host);
    thin(collected.processes);
    period_ns = std::min(2 * period_ns, kLongestPeriodNs);
  }

  observe::ProcessTree tree;  // used only by the thread
  observe::Host host;
  GpuReader gpus;  // used only by the thread
  bool gpus_wanted;
  std::string closely_from;
  std::uint64_t gpus_due_ns = 0;
  std::uint64_t gpu_samples = 0;
  std::map<std::string, int> files;  // number of times each was seen
  observe::Allowance rare_looks{.began_ns = base::now_ns(), .free_ns = kFreeRareNs, .share = kRareCostShare};
  std::uint64_t rare_period_ns = kRarePeriodNs, rare_due_ns = 0;
  mutable std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  HostRecord collected;
  std::optional<Error> lost;  // why the thread ended early
  std::uint64_t period_ns;
  std::optional<base::Thread> thread;  // last: joined first
};

HostSampler::HostSampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostSampler::HostSampler(HostSampler&&) noexcept = default;
HostSampler& HostSampler::operator=(HostSampler&&) noexcept = default;
HostSampler::~HostSampler() { stop(); }

Result<HostSampler> HostSampler::start(HostSamplerOptions options) {
  if (options.pid <= 0) return config_error("pid is missing: pass the process to watch");
  if (options.period_ns < 1'000'000) return config_error("period_ns must be at least 1000000 (1 ms)");
  auto impl = std::make_unique<Impl>(options);
  impl->collected.quota_cpus = impl->host.quota_cpus();
  impl->collected.memory_limit_bytes = impl->host.memory_limit_bytes();
  FEEDLINE_TRY(auto thread, base::Thread::start(
                                "feedline-sample", [state = impl.get()] { state->run(); },
                                [state = impl.get()](Error error) { state->lose(std::move(error)); }));
  impl->thread.emplace(std::move(thread));
  return HostSampler(std::move(impl));
}

void HostSampler::stop() {
  if (!impl_) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_all();
  impl_->thread.reset();
}

HostRecord HostSampler::record() const {
  const std::lock_guard lock(impl_->mutex);
  HostRecord copy = impl_->collected;
  copy.period_ns = impl_->period_ns;
  if (impl_->lost)
    copy.unseen.push_back("the sampler failed: " + impl_->lost->message() + "; there are no later samples");
  if (impl_->stopping) {  // until then the thread owns the tree and its files
    for (const std::int32_t pid : impl_->tree.unreadable())
      copy.unseen.push_back("process " + std::to_string(pid) + ": this user may not read its input counters");
    for (const auto& [path, times] : impl_->files)
      if (times > 1) copy.files.push_back(path);
  }
  return copy;
}

}  // namespace feedline
