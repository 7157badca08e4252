// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "batch/batch_layout.h"
#include "device/device.h"
#include "pipeline/adaptation.h"
#include "pipeline/bad_sample_policy.h"
#include "pipeline/epochs.h"
#include "pipeline/progress.h"
#include "pipeline/row_filler.h"
#include "pipeline/thread_placement.h"
#include "telemetry/spans.h"
#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

using telemetry::Stage;
using telemetry::StageCounters;

namespace {

std::unexpected<Error> closed_error() {
  Error error;
  error.code = ErrorCode::kCancelled;
  error.what = "the loader is closed";
  return std::unexpected(std::move(error));
}

// What a thread fills rows with.
struct Hands {
  std::size_t worker;
  RowFiller filler;
  StageCounters& stage;
  Progress& progress;
};

}  // namespace

struct Pipeline::Impl {
  Impl(std::shared_ptr<const Recipe> recipe_in, PipelinePlan plan_in);

  // consumer side
  Result<void> begin(const EpochStart& start, bool prepare_next);
  Result<void> give(std::vector<GivenSample> samples);
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& out);
  void stop();

  // worker side
  void work(std::size_t worker);
  std::optional<Task> next_task(std::unique_lock<std::mutex>& lock, std::size_t worker);
  bool fill_rows(Hands& hands, Task& task);
  void note(const Task& task, std::span<RowFiller::Noted> rows);

  std::unique_ptr<Epoch> make_epoch(const EpochStart& start) const;

  bool is_wanted(std::size_t worker) const {
    return worker < wanted.load(std::memory_order_relaxed);  // what it says orders nothing: the lock does
  }

  // under mutex
  void use_settings();
  void wait_for_work(std::unique_lock<std::mutex>& lock, StageCounters& stage);
  std::uint64_t slots_to_wake() const;
  void open_slot();
  void reuse_pages(Slot& slot);
  void settle(const Task& task);
  void update_recall();
  Result<Loader::Polled> deliver(std::shared_ptr<Slot> slot, Batch& out);

  const std::shared_ptr<const Recipe> recipe;
  const PipelinePlan plan;
  const BadSamplePolicy policy;
  const std::shared_ptr<device::Device> device = device::host_device();
  const std::shared_ptr<memory::Allocator> allocator = device->allocator();
  std::vector<telemetry::ThreadCounters> counters;  // one per worker, and the consumer's last
  std::vector<Progress> progress;                   // one per worker
  // Threads that fill rows come back to the lock before they take another one: there is something that they must know.
  std::atomic<bool> recall{false};
  // Threads that fill rows, of those there are: the first ones. The others park, with no row in their hands.
  std::atomic<std::size_t> wanted{static_cast<std::size_t>(plan.options.num_workers)};
  const std::unique_ptr<ReadAhead> ahead;  // nullptr: the format has nothing to read ahead

  mutable std::mutex mutex;
  // Of settings. Written under the lock, read without: whoever watches it looks again.
  std::atomic<std::uint64_t> changes{0};
  std::condition_variable work_cv;    // workers: a ticket, room for a slot, or the end
  std::condition_variable parked_cv;  // workers that are not wanted: they are, or the end
  std::condition_variable ready_cv;   // consumer: a slot was settled, or a failure
  Epochs epochs;
  const std::unique_ptr<Adaptation> adaptation;  // nullptr: all threads are wanted
  std::uint64_t slots = plan.slots;              // that may be open now
  IdleTime idle;                                 // of threads that are wanted
  bool leaves_core = false;
  std::optional<Error> failure;  // ends the epoch: no memory, budget used up
  std::optional<Error> broken;   // ends the pipeline: a thread is gone
  bool stopping = false;
  std::uint64_t epoch_bad = 0;  // bad samples delivered in this epoch
  std::vector<BadSample> bad;
  EpochStart last_position;
  std::optional<std::uint64_t> last_batch;  // of the epoch that runs; nullopt: none was delivered
  std::uint64_t delivered_batches = 0, delivered_samples = 0, held_peak = 0;
  std::uint64_t first_ns = 0, last_ns = 0;
  std::uint64_t waiting_ns = 0;  // since when the consumer has had no batch; 0: it does not wait
  std::vector<base::Thread> threads;
  pid_t pid = 0;  // of the process that started the threads
};

Pipeline::Impl::Impl(std::shared_ptr<const Recipe> recipe_in, PipelinePlan plan_in)
    : recipe(std::move(recipe_in)),
      plan(std::move(plan_in)),
      policy(plan.options.on_error, plan.options.error_budget,
             !plan.options.given_order && plan.options.world_size == 1),
      counters(static_cast<std::size_t>(plan.options.num_workers) + 1),
      progress(static_cast<std::size_t>(plan.options.num_workers)),
      ahead(ReadAhead::make(recipe->format, plan, read_ahead_mode())),
      adaptation(Adaptation::make(plan, adaptation_mode())) {}

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
  return std::make_unique<Epoch>(config, policy);
}

Result<void> Pipeline::Impl::begin(const EpochStart& start, bool prepare_next) {
  if (pid != 0 && pid != getpid())
    return config_error(
        "this loader was started before fork(); its threads stayed in the parent: make a loader in the child");
  const LoaderOptions& o = plan.options;
  auto epoch = make_epoch(start);
  auto following = prepare_next && !o.given_order ? make_epoch({start.epoch + 1, 0, {}, 0}) : nullptr;
  {
    const std::lock_guard lock(mutex);
    if (stopping) {
      return closed_error();
    }
    if (broken) return std::unexpected(*broken);
    epochs.begin(std::move(epoch), std::move(following));
    failure.reset();
    update_recall();
    epoch_bad = 0;
    last_position = start;
    last_batch.reset();
    waiting_ns = 0;
    if (adaptation) adaptation->interrupt();
    if (first_ns == 0) first_ns = base::now_ns();
  }
  if (ahead) ahead->begin(prepare_next);
  work_cv.notify_all();
  if (threads.empty()) {
    pid = getpid();
    const auto placed = place_workers(o.num_workers, leaves_core);
    for (int i = 0; i < o.num_workers; ++i) {
      const auto worker = static_cast<std::size_t>(i);
      FEEDLINE_TRY(auto thread,
                   base::Thread::start("feedline-" + std::to_string(i),
                                       [this, worker, cpus = placed.empty() ? std::vector<int>() : placed[worker]] {
                                         if (!cpus.empty()) base::run_on(cpus);
                                         work(worker);
                                       }));
      threads.push_back(std::move(thread));
    }
  }
  return {};
}

// ---- workers ----

void Pipeline::Impl::open_slot() {
  // always what the largest batch takes: blocks of one size go round, and pages that nobody writes cost nothing
  auto lease = memory::Lease::take(allocator, plan.batch_bytes);
  if (!lease) {
    if (epochs.drop_following()) return;  // nobody has asked for it yet
    failure = std::move(lease).error();
    update_recall();
    ready_cv.notify_all();
    return;
  }
  Slot& slot = epochs.open(std::move(*lease));
  slot.layout = plan.layouts.empty()
                    ? std::make_shared<batch::BatchLayout>(schema_of(*recipe, slot.samples), slot.samples.size())
                    : plan.layouts[slot.bucket];
  FEEDLINE_CHECK(slot.layout->bytes() <= plan.batch_bytes);
  held_peak = std::max(held_peak, epochs.open_slots() * plan.batch_bytes);
  work_cv.notify_all();
}

// The training loop may just have let go of a batch: rows that nobody has begun can do with its pages.
void Pipeline::Impl::reuse_pages(Slot& slot) {
  const std::uint64_t spare = allocator->spare_pages();
  if (spare == 0 || spare == slot.seen_spare.load(std::memory_order_relaxed)) return;
  slot.seen_spare.store(spare, std::memory_order_relaxed);
  const std::uint64_t row = slot.tickets.pause();
  const auto [first, last] = slot.layout->largest_field_from(row);
  if (row < slot.rows) allocator->reuse_pages(slot.lease->data(), first, last);
  slot.tickets.resume(row);
}

void Pipeline::Impl::update_recall() { recall = stopping || failure || epochs.has_refill(); }

// Threads that filled a row, or waited for one, look again whether they are wanted: all of them, as one that parks must
// not be the one that was told of work.
void Pipeline::Impl::use_settings() {
  const tune::Settings settings = adaptation->settings();
  changes = adaptation->changes();
  wanted = static_cast<std::size_t>(settings.threads);
  slots = static_cast<std::uint64_t>(settings.depth);
  work_cv.notify_all();
  parked_cv.notify_all();
}

// Threads that found no room go on when no more slots than these are open. Waking one takes as long as filling a batch
// of short rows: they sleep until there is room for many.
std::uint64_t Pipeline::Impl::slots_to_wake() const { return plan.short_rows ? slots / 2 : slots - 1; }

void Pipeline::Impl::wait_for_work(std::unique_lock<std::mutex>& lock, StageCounters& stage) {
  const bool blocked = epochs.can_open();  // only room is missing
  const std::uint64_t started = base::now_ns();
  idle.begin(started);
  work_cv.wait(lock);
  const std::uint64_t ended = base::now_ns();
  idle.end(started, ended);
  if (blocked)
    stage.add_blocked(ended - started);
  else
    stage.add_starved(ended - started);
}

// Waits for a row to fill. nullopt: the pipeline stops.
std::optional<Task> Pipeline::Impl::next_task(std::unique_lock<std::mutex>& lock, std::size_t worker) {
  while (!stopping) {
    if (!is_wanted(worker)) {
      parked_cv.wait(lock);
      continue;
    }
    if (!failure) {
      if (auto task = epochs.take_task()) {
        update_recall();
        reuse_pages(*task->ticket.slot);
        return task;
      }
      if (epochs.can_open() && epochs.open_slots() < slots) {
        open_slot();
        continue;
      }
    }
    wait_for_work(lock, counters[worker][static_cast<std::size_t>(Stage::kBatch)]);
  }
  return std::nullopt;
}

void Pipeline::Impl::note(const Task& task, std::span<RowFiller::Noted> rows) {
  if (rows.empty()) return;
  const std::lock_guard lock(mutex);
  Epoch* epoch = epochs.epoch_of(task);
  if (epoch == nullptr) return;  // it was abandoned, and the slot with it
  for (auto& [row, outcome] : rows) epoch->note(*task.ticket.slot, row, std::move(outcome));
}

// Fills the rows of the task, and whatever else is left of its batch. true: the batch is complete.
bool Pipeline::Impl::fill_rows(Hands& hands, Task& task) {
  Ticket& ticket = task.ticket;
  Slot& slot = *ticket.slot;
  const std::uint64_t row_bytes = slot.layout->row_bytes();
  Progress& mine = hands.progress;
  std::uint64_t filled = 0;
  bool has_spare = false;
  do {
    mine.row.store(ticket.row, std::memory_order_relaxed);
    mine.filled.store(filled, std::memory_order_relaxed);
    mine.slot.store(&slot, std::memory_order_release);
    note(task, hands.filler.fill(ticket, task.epoch, mine.row));
    filled += ticket.rows;
    const std::uint64_t spare = allocator->spare_pages();
    has_spare = spare != 0 && spare != slot.seen_spare.load(std::memory_order_relaxed);
  } while (!has_spare && !recall.load(std::memory_order_relaxed) && is_wanted(hands.worker) && ticket.advance());
  const std::uint64_t finished = base::now_ns();
  mine.slot.store(nullptr, std::memory_order_release);
  const bool complete = slot.tickets.finish(filled);
  hands.stage.add_item(base::now_ns() - finished, filled * row_bytes);
  return complete;
}

void Pipeline::Impl::settle(const Task& task) {
  Epoch* epoch = epochs.epoch_of(task);
  if (epoch == nullptr) return;  // it was abandoned, and the slot with it
  epoch->settle(*task.ticket.slot);
  ready_cv.notify_one();
  if (!epoch->has_refill()) return;
  update_recall();
  work_cv.notify_one();
}

void Pipeline::Impl::work(std::size_t worker) {
  StageCounters& stage = counters[worker][static_cast<std::size_t>(Stage::kBatch)];
  try {
    Hands hands{worker, {recipe, policy, plan.options.seed, &counters[worker], ahead.get()}, stage, progress[worker]};
    clockid_t cpu_clock{};
    const bool has_clock = ::pthread_getcpuclockid(::pthread_self(), &cpu_clock) == 0;
    std::unique_lock lock(mutex);
    if (adaptation && has_clock) adaptation->add_worker(cpu_clock);
    while (auto task = next_task(lock, worker)) {
      lock.unlock();
      const bool complete = fill_rows(hands, *task);
      lock.lock();
      if (complete) settle(*task);
    }
  } catch (const std::exception& e) {  // a broken promise of ours, or no memory: never a silent death
    const std::lock_guard lock(mutex);
    broken = Error{ErrorCode::kInternal, std::string("internal error: ") + e.what(), {}, 0};
    ready_cv.notify_all();
  }
}

// ---- consumer ----

Result<void> Pipeline::Impl::give(std::vector<GivenSample> samples) {
  const LoaderOptions& o = plan.options;
  if (!o.given_order) return config_error("give: this loader follows its plan; make it with given_order");
  if (samples.empty() || samples.size() > o.batch_size)
    return config_error("give: a batch must have between 1 and " + std::to_string(o.batch_size) + " samples, got " +
                        std::to_string(samples.size()));
  for (const GivenSample& sample : samples)
    if (sample.index >= recipe->format->size())
      return config_error("give: sample " + std::to_string(sample.index) + " is out of range: the data set holds " +
                          std::to_string(recipe->format->size()));
  {
    const std::lock_guard lock(mutex);
    if (!epochs.current()) return config_error("give: no epoch has been started");
    if (ahead) ahead->give(samples, epochs.current()->oldest_batch());
    epochs.current()->give(std::move(samples));
  }
  work_cv.notify_all();
  return {};
}

Result<Loader::Polled> Pipeline::Impl::deliver(std::shared_ptr<Slot> slot, Batch& out) {
  last_ns = base::now_ns();
  waiting_ns = 0;
  const Epoch* epoch = epochs.current();
  last_position = {epoch->epoch(), epoch->position(), epoch->delivered(), epoch->left_out()};
  last_batch = slot->batch;
  epoch_bad += slot->bad.size();
  if (!slot->bad.empty() && policy.over_budget(epoch_bad)) failure = policy.budget_error(slot->bad.back().error);
  update_recall();
  bad.insert(bad.end(), slot->bad.begin(), slot->bad.end());
  if (failure) return std::unexpected(*failure);
  if (slot->rows == 0) return Loader::Polled::kPending;  // wholly taken over by refills: only its log counts
  const std::uint64_t index = epoch->index_of(slot->batch);
  const bool report = policy.action() == OnError::kReport;
  if (!slot->failures.empty() && !report) {
    const auto& first = slot->failures.front();
    bad.push_back({first.error, epoch->epoch(), index, slot->samples[first.row], OnError::kRaise});
    return std::unexpected(first.error);
  }
  FEEDLINE_TRY(auto lease, device->deliver(std::move(slot->lease)));
  ++delivered_batches;
  delivered_samples += slot->rows;
  out = batch::make_batch(std::move(slot->layout), std::move(lease), index, std::move(slot->samples),
                          std::move(slot->failures));
  return Loader::Polled::kBatch;
}

Result<Loader::Polled> Pipeline::Impl::poll(std::chrono::milliseconds wait, Batch& out) {
  if (pid != getpid()) return config_error("this loader was started before fork(): make a loader in the child");
  const std::uint64_t started = base::now_ns();
  const auto deadline = std::chrono::steady_clock::now() + wait;
  StageCounters& stage = counters.back()[static_cast<std::size_t>(Stage::kConsumer)];
  std::unique_lock lock(mutex);
  if (waiting_ns == 0) waiting_ns = started;
  bool was_ready = waiting_ns == started;
  while (true) {
    if (stopping) {
      return closed_error();
    }
    if (broken) return std::unexpected(*broken);
    if (failure) return std::unexpected(*failure);
    Epoch* epoch = epochs.current();
    if (auto slot = epoch->take_ready()) {
      stage.add_starved(base::now_ns() - started);
      telemetry::record_span(Stage::kConsumer, waiting_ns, base::now_ns(), delivered_batches);
      const std::uint64_t asked_ns = waiting_ns;
      auto delivered = deliver(std::move(slot), out);
      const bool has_room = epochs.open_slots() <= slots_to_wake();
      const bool goes_on = delivered && *delivered == Loader::Polled::kPending;
      if (adaptation && adaptation->delivered(last_ns, was_ready ? 0 : last_ns - asked_ns, idle, counters))
        use_settings();
      // a thread that is woken under the lock only goes to sleep again, and may take the CPU from its holder
      if (!goes_on) lock.unlock();
      if (has_room) work_cv.notify_all();
      if (goes_on) continue;
      return delivered;
    }
    if (epoch->over()) return Loader::Polled::kEnd;
    was_ready = false;
    if (ready_cv.wait_until(lock, deadline) == std::cv_status::timeout) {
      const std::uint64_t now = base::now_ns();
      if (adaptation && waiting_ns != 0 && adaptation->waits(now, now - waiting_ns)) use_settings();
      stage.add_starved(base::now_ns() - started);
      const auto timeout_ns = static_cast<std::uint64_t>(plan.options.timeout.count()) * 1'000'000;
      if (timeout_ns > 0 && base::now_ns() - waiting_ns > timeout_ns)
        return std::unexpected(stall_error(plan.options.timeout, epochs.current(), progress, *recipe));
      return Loader::Polled::kPending;
    }
  }
}

void Pipeline::Impl::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    update_recall();
  }
  work_cv.notify_all();
  parked_cv.notify_all();
  ready_cv.notify_all();
  threads.clear();  // joins
  if (ahead) ahead->stop();
  const std::lock_guard lock(mutex);
  epochs.clear();
}

// ---- the class ----

Pipeline::Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan)
    : impl_(std::make_unique<Impl>(std::move(recipe), std::move(plan))) {}

Pipeline::~Pipeline() {
  if (impl_->pid != 0 && impl_->pid != getpid()) {
    static_cast<void>(impl_.release());  // a child after fork(): locks may be held by threads that are not here
    return;
  }
  impl_->stop();
}

Result<void> Pipeline::begin(const EpochStart& start, bool prepare_next) { return impl_->begin(start, prepare_next); }

Result<Loader::Polled> Pipeline::poll(std::chrono::milliseconds wait, Batch& batch) { return impl_->poll(wait, batch); }

Result<void> Pipeline::give(std::vector<GivenSample> samples) { return impl_->give(std::move(samples)); }

Result<void> Pipeline::end_giving() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->epochs.current()) return config_error("end_giving: no epoch has been started");
  impl_->epochs.current()->end_giving();
  return {};
}

void Pipeline::stop() {
  if (impl_->pid == 0 || impl_->pid == getpid()) impl_->stop();
}

EpochStart Pipeline::position() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->last_position;
}

bool Pipeline::has_batches() const {
  const std::lock_guard lock(impl_->mutex);
  const Epoch* epoch = impl_->epochs.current();
  return epoch != nullptr && epoch->plan().batches(0) > 0;  // no rank has more than the first
}

std::vector<std::uint64_t> Pipeline::rows_per_rank() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::uint64_t> rows;
  if (!impl_->last_batch || !impl_->epochs.current()) return rows;
  const plan::Plan& plan = impl_->epochs.current()->plan();
  for (std::uint64_t rank = 0; rank < impl_->plan.options.world_size; ++rank)
    rows.push_back(plan.rows(*impl_->last_batch, rank));
  return rows;
}

void Pipeline::leave_a_cpu() {
  const std::lock_guard lock(impl_->mutex);
  if (std::exchange(impl_->leaves_core, true) || !impl_->adaptation) return;
  const int most = std::max(std::min(share_of_cpus() - 1, impl_->plan.options.num_workers), 1);
  if (impl_->adaptation->limit_threads(most)) impl_->use_settings();
}

std::uint64_t Pipeline::changes() const { return impl_->changes; }

std::vector<BadSample> Pipeline::bad_samples(std::uint64_t from) const {
  const std::lock_guard lock(impl_->mutex);
  const auto& bad = impl_->bad;
  return {bad.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(from, bad.size())), bad.end()};
}

std::uint64_t Pipeline::bad_count() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->bad.size();
}

const PipelinePlan& Pipeline::plan() const { return impl_->plan; }

std::string Pipeline::explain_reads() const {
  const auto storage = impl_->recipe->format->storage();
  const std::string note = storage ? storage->summary() : std::string();
  const std::string ahead = impl_->ahead ? impl_->ahead->explain() : std::string();
  return note + (note.empty() || ahead.empty() ? "" : "; ") + ahead;
}

LoaderStats Pipeline::stats() const {
  const Impl& impl = *impl_;
  LoaderStats stats;
  stats.threads = impl.plan.options.num_workers;
  stats.budget_bytes = impl.plan.options.memory_budget;
  for (int s = 0; s < telemetry::kStages; ++s) {
    telemetry::StageTotals totals;
    for (const auto& thread : impl.counters) thread[static_cast<std::size_t>(s)].add_to(totals);
    constexpr double kNs = 1e-9;
    stats.stages.push_back({std::string(telemetry::name_of(static_cast<Stage>(s))),
                            totals.items,
                            totals.bytes,
                            static_cast<double>(totals.busy_ns) * kNs,
                            static_cast<double>(totals.blocked_ns) * kNs,
                            static_cast<double>(totals.starved_ns) * kNs,
                            {totals.latency.begin(), totals.latency.end()}});
  }
  const std::lock_guard lock(impl.mutex);
  stats.batches = impl.delivered_batches;
  stats.samples = impl.delivered_samples;
  stats.bad_samples = impl.bad.size();
  const Epoch* epoch = impl.epochs.current();
  const bool running = epoch != nullptr && !epoch->over();
  if (impl.first_ns != 0) {
    const std::uint64_t until = running ? base::now_ns() : std::max(impl.last_ns, impl.first_ns);
    stats.wall_s = static_cast<double>(until - impl.first_ns) * 1e-9;
  }
  if (epoch != nullptr) stats.ready_batches = epoch->ready_slots();
  stats.held_bytes = impl.epochs.open_slots() * impl.plan.batch_bytes;
  stats.held_bytes_peak = impl.held_peak;
  if (impl.ahead) stats.held_bytes += impl.ahead->held_bytes();
  if (impl.adaptation) stats.controller = impl.adaptation->stats(impl.first_ns);
  return stats;
}

}  // namespace feedline::pipeline
