// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "base/thread.h"
#include "device/device.h"
#include "format/format.h"
#include "pipeline/bad_sample_policy.h"
#include "pipeline/exchange.h"
#include "pipeline/thread_placement.h"
#include "pipeline/worker.h"

namespace feedline::pipeline {

// In this order, which is what depends on what: a thread that still runs at the end finds everything else alive.
struct Pipeline::Impl {
  Impl(std::shared_ptr<const Recipe> recipe_in, PipelinePlan plan_in, std::shared_ptr<device::Device> device);

  std::unique_ptr<Epoch> make_epoch(const EpochStart& start) const;
  Result<void> begin(const EpochStart& start, bool prepare_next);
  Result<void> start_threads();
  void work(std::size_t worker);
  Result<void> check_given(const std::vector<GivenSample>& samples) const;
  void stop();
  bool is_of_a_parent() const;

  const std::shared_ptr<const Recipe> recipe;
  const PipelinePlan plan;
  const BadSamplePolicy policy;
  std::vector<telemetry::ThreadCounters> counters;  // one per worker, and the consumer's last
  std::vector<Progress> progress;                   // one per worker
  const std::unique_ptr<ReadAhead> ahead;           // nullptr: the format has nothing to read ahead
  Exchange exchange;                                // the lock, and all that changes under it
  std::vector<base::Thread> threads;                // the consumer's
  std::atomic<pid_t> pid = 0;                       // of the process that began an epoch
};

Pipeline::Impl::Impl(std::shared_ptr<const Recipe> recipe_in, PipelinePlan plan_in,
                     std::shared_ptr<device::Device> device)
    : recipe(std::move(recipe_in)),
      plan(std::move(plan_in)),
      policy(plan.options.on_error, plan.options.error_budget,
             !plan.options.given_order && plan.options.world_size == 1),
      counters(static_cast<std::size_t>(plan.options.num_workers) + 1),
      progress(static_cast<std::size_t>(plan.options.num_workers)),
      ahead(ReadAhead::make(recipe->records, plan, read_ahead_mode())),
      exchange({*recipe, plan, policy, counters, progress, ahead.get(), std::move(device)}) {}

std::unique_ptr<Epoch> Pipeline::Impl::make_epoch(const EpochStart& start) const {
  const LoaderOptions& o = plan.options;
  Epoch::Config config;
  config.epoch = start.epoch;
  config.order = plan::make_order(plan.order, start.epoch);
  config.plan = {o.batch_size, o.rank,         o.world_size,    o.drop_last,
                 o.uneven,     start.position, start.delivered, start.left_out};
  config.in_order = o.in_order || o.world_size > 1;
  config.given = o.given_order;
  config.grain = RowFiller::grain(*recipe, o.batch_size, o.num_workers);
  config.place_at_open = plan.layouts.empty();
  config.prepares = exchange.prepares();
  return std::make_unique<Epoch>(config, policy);
}

bool Pipeline::Impl::is_of_a_parent() const {
  const pid_t began = pid;
  return began != 0 && began != getpid();
}

Result<void> Pipeline::Impl::begin(const EpochStart& start, bool prepare_next) {
  pid = getpid();  // before any lock that a child would find locked
  auto epoch = make_epoch(start);
  auto following = prepare_next && !plan.options.given_order ? make_epoch({start.epoch + 1, 0, {}, 0}) : nullptr;
  FEEDLINE_CHECK_OK(exchange.begin(start, std::move(epoch), std::move(following)));
  return threads.empty() ? start_threads() : Result<void>();
}

Result<void> Pipeline::Impl::start_threads() {
  FEEDLINE_CHECK_OK(exchange.prepare());
  const auto placed = place_workers(plan.options.num_workers, exchange.leaves_a_cpu());
  for (int i = 0; i < plan.options.num_workers; ++i) {
    const auto worker = static_cast<std::size_t>(i);
    FEEDLINE_TRY(auto thread, base::Thread::start(
                                  "feedline-" + std::to_string(i),
                                  [this, worker, cpus = placed.empty() ? std::vector<int>() : placed[worker]] {
                                    if (!cpus.empty()) base::run_on(cpus);
                                    work(worker);
                                  },
                                  [this](Error error) { exchange.break_off(std::move(error)); }));
    threads.push_back(std::move(thread));
  }
  return {};
}

void Pipeline::Impl::work(std::size_t worker) {
  auto& stages = counters[worker];
  RowFiller filler(recipe, policy, plan.options.seed, &stages, ahead.get(),
                   memory::sample_limit(plan.options.memory_budget));
  Worker(worker, exchange, filler, stages[static_cast<std::size_t>(telemetry::Stage::kBatch)], progress[worker]).run();
}

Result<void> Pipeline::Impl::check_given(const std::vector<GivenSample>& samples) const {
  const LoaderOptions& o = plan.options;
  if (!o.given_order) return config_error("give: this loader follows its plan; make it with given_order");
  if (samples.empty() || samples.size() > o.batch_size)
    return config_error("give: a batch must have between 1 and " + std::to_string(o.batch_size) + " samples, got " +
                        std::to_string(samples.size()));
  for (const GivenSample& sample : samples)
    if (sample.index >= recipe->format->size())
      return config_error("give: sample " + std::to_string(sample.index) + " is out of range: the dataset holds " +
                          std::to_string(recipe->format->size()));
  return {};
}

void Pipeline::Impl::stop() {
  exchange.stop();
  if (ahead) ahead->cancel();  // threads may wait for a slow read
  threads.clear();             // joins
  if (ahead) ahead->stop();
  exchange.clear();
}

// ---- the class ----

std::shared_ptr<device::Device> usual_device() { return device::host_device(); }

Pipeline::Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan, std::shared_ptr<device::Device> device)
    : impl_(std::make_unique<Impl>(std::move(recipe), std::move(plan), std::move(device))) {}

Pipeline::~Pipeline() {
  if (impl_->is_of_a_parent()) {
    static_cast<void>(impl_.release());  // a child after fork(): locks may be held by threads that are not here
    return;
  }
  impl_->stop();
}

Result<void> Pipeline::check_process() const {
  if (!impl_->is_of_a_parent()) return {};
  return config_error(
      "this loader was started before fork(); its threads stayed in the parent: make a loader in the child");
}

Result<void> Pipeline::begin(const EpochStart& start, bool prepare_next) {
  FEEDLINE_CHECK_OK(check_process());
  return impl_->begin(start, prepare_next);
}

void Pipeline::interrupt() {
  if (!impl_->is_of_a_parent()) impl_->exchange.interrupt();
}

Result<Loader::Polled> Pipeline::poll(std::chrono::milliseconds wait, Batch& batch) {
  FEEDLINE_CHECK_OK(check_process());
  if (impl_->pid == 0) return config_error("poll: no epoch has been started");
  return impl_->exchange.poll(wait, batch);
}

Result<void> Pipeline::give(std::vector<GivenSample> samples) {
  FEEDLINE_CHECK_OK(check_process());
  FEEDLINE_CHECK_OK(impl_->check_given(samples));
  return impl_->exchange.give(std::move(samples));
}

Result<void> Pipeline::end_giving() {
  FEEDLINE_CHECK_OK(check_process());
  return impl_->exchange.end_giving();
}

void Pipeline::stop() {
  if (!impl_->is_of_a_parent()) impl_->stop();
}

EpochStart Pipeline::position() const { return impl_->exchange.position(); }

bool Pipeline::has_batches() const { return impl_->exchange.has_batches(); }

std::vector<std::uint64_t> Pipeline::rows_per_rank() const { return impl_->exchange.rows_per_rank(); }

void Pipeline::leave_a_cpu() { impl_->exchange.leave_a_cpu(); }

std::uint64_t Pipeline::changes() const { return impl_->exchange.changes(); }

std::vector<BadSample> Pipeline::bad_samples(std::uint64_t from) const { return impl_->exchange.bad_samples(from); }

std::uint64_t Pipeline::bad_count() const { return impl_->exchange.bad_count(); }

const PipelinePlan& Pipeline::plan() const { return impl_->plan; }

std::string Pipeline::explain_reads() const {
  const auto& records = impl_->recipe->records;
  const auto storage = records ? records->storage() : nullptr;
  const std::string note = storage ? storage->summary() : std::string();
  const std::string ahead = impl_->ahead ? impl_->ahead->explain() : std::string();
  return note + (note.empty() || ahead.empty() ? "" : "; ") + ahead;
}

std::string Pipeline::explain_late() const {
  if (impl_->plan.late_bytes == 0) return {};
  const std::uint64_t bytes = impl_->exchange.late_bytes();
  const char* source = bytes != impl_->plan.late_bytes ? "as measured"
                       : impl_->plan.late_is_guess     ? "a guess, until the first batch is measured"
                                                       : "as the format says";
  return "lists and padded fields: about " + std::to_string((bytes + 1023) / 1024) + " KiB a batch (" + source +
         "), as read and once more in the batch";
}

LoaderStats Pipeline::stats() const {
  LoaderStats stats;
  stats.threads = impl_->plan.options.num_workers;
  stats.budget_bytes = impl_->plan.options.memory_budget;
  for (int s = 0; s < telemetry::kStages; ++s) {
    telemetry::StageTotals totals;
    for (const auto& thread : impl_->counters) thread[static_cast<std::size_t>(s)].add_to(totals);
    constexpr double kNs = 1e-9;
    stats.stages.push_back({std::string(telemetry::name_of(static_cast<telemetry::Stage>(s))),
                            totals.items,
                            totals.bytes,
                            static_cast<double>(totals.busy_ns) * kNs,
                            static_cast<double>(totals.blocked_ns) * kNs,
                            static_cast<double>(totals.starved_ns) * kNs,
                            {totals.latency.begin(), totals.latency.end()}});
  }
  impl_->exchange.add_to(stats);
  return stats;
}

}  // namespace feedline::pipeline
