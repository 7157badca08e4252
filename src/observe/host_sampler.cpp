// SPDX-License-Identifier: Apache-2.0
// One thread samples; record() copies under the same lock that a sample is stored under, so that neither waits for the
// other's reading of files.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "feedline/observe.h"
#include "observe/host.h"
#include "observe/process_tree.h"

namespace feedline {
namespace {

constexpr std::size_t kHostRows = 2048;      // 3.4 minutes at ten a second, then half as many for twice as long
constexpr std::size_t kProcessRows = 65536;  // 6 MB
constexpr std::uint64_t kCostShare = 125;    // a sample may cost 1/125 of its period: with the rare ones, under 1 %
constexpr std::uint64_t kLongestPeriodNs = 60'000'000'000;
constexpr std::uint64_t kRarePeriodNs = 1'000'000'000;
// Going through a process's pages holds up its own changes of them: less often than what is only counters.
constexpr std::uint64_t kRareCostShare = 1000;
constexpr std::size_t kMemoryRows = 1024;
constexpr std::size_t kFiles = 256;

std::uint64_t thread_cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

// Drops the samples of every second time; the first stays, and the last, which tells the totals.
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
      : tree(options.root, options.pid), host(options.root, options.pid), period_ns(options.period_ns) {}

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      lock.unlock();
      const std::uint64_t now = base::now_ns(), before = thread_cpu_ns();
      const auto processes = tree.sample(now);
      const HostCounters counters = host.sample(now);
      const std::uint64_t cost = thread_cpu_ns() - before;
      if (now >= next_rare_ns) look_rarely(now);
      lock.lock();
      kept.processes.insert(kept.processes.end(), processes.begin(), processes.end());
      kept.host.push_back(counters);
      kept.sampler_cpu_ns += cost;
      while (kept.host.size() > kHostRows || kept.processes.size() > kProcessRows) slow_down();
      // nothing is gained from samples that disturb what they measure
      const std::uint64_t affordable = std::min(cost * kCostShare, kLongestPeriodNs);
      wake.wait_for(lock, std::chrono::nanoseconds(std::max(period_ns, affordable)), [this] { return stopping; });
    }
  }

  // What costs more than a few reads of small files. The files are the thread's own until it has ended.
  void look_rarely(std::uint64_t now) {
    const std::uint64_t before = thread_cpu_ns();
    const TreeMemory memory = tree.memory(now);
    std::set<std::string> open;
    tree.add_open_files(open, kFiles);
    for (const std::string& path : open)
      if (files.size() < kFiles || files.contains(path)) ++files[path];
    const std::uint64_t cost = thread_cpu_ns() - before;
    rare_period_ns = std::max(rare_period_ns, std::min(cost * kRareCostShare, kLongestPeriodNs));
    next_rare_ns = now + rare_period_ns;
    const std::lock_guard lock(mutex);
    kept.sampler_cpu_ns += cost;
    kept.memory.push_back(memory);
    if (kept.memory.size() <= kMemoryRows) return;
    thin(kept.memory);
    rare_period_ns = std::min(2 * rare_period_ns, kLongestPeriodNs);
  }

  void slow_down() {
    thin(kept.host);
    thin(kept.processes);
    period_ns = std::min(2 * period_ns, kLongestPeriodNs);
  }

  observe::ProcessTree tree;  // of the thread alone
  observe::Host host;
  std::map<std::string, int> files;  // how often each was met
  std::uint64_t rare_period_ns = kRarePeriodNs, next_rare_ns = 0;
  mutable std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  HostRecord kept;
  std::uint64_t period_ns;
  std::optional<base::Thread> thread;  // last: joined first
};

HostSampler::HostSampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostSampler::HostSampler(HostSampler&&) noexcept = default;
HostSampler& HostSampler::operator=(HostSampler&&) noexcept = default;
HostSampler::~HostSampler() { stop(); }

Result<HostSampler> HostSampler::start(HostSamplerOptions options) {
  if (options.pid <= 0) return config_error("the number of the process to watch is missing");
  if (options.period_ns < 1'000'000) return config_error("a sample each millisecond is the most there is");
  auto impl = std::make_unique<Impl>(options);
  impl->kept.quota_cpus = impl->host.quota_cpus();
  impl->kept.memory_limit_bytes = impl->host.memory_limit_bytes();
  FEEDLINE_TRY(auto thread, base::Thread::start("feedline-sample", [state = impl.get()] { state->run(); }));
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
  HostRecord copy = impl_->kept;
  copy.period_ns = impl_->period_ns;
  if (impl_->stopping) {  // the tree and its files belong to the thread until then
    for (const std::int32_t pid : impl_->tree.unreadable())
      copy.unseen.push_back("process " + std::to_string(pid) + ": this user may not read its input counters");
    for (const auto& [path, times] : impl_->files)
      if (times > 1) copy.files.push_back(path);
  }
  return copy;
}

}  // namespace feedline
