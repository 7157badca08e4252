// SPDX-License-Identifier: Apache-2.0
// Connects the stages in the order in which a sample passes them. Comments with "----" name components that do not
// change after that point.
#include "pipeline/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/test_conditions.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "format/format.h"
#include "pipeline/batch_scheduler.h"
#include "pipeline/clip_ahead.h"
#include "pipeline/media/video_decoders.h"
#include "pipeline/planning/memory_share.h"
#include "pipeline/planning/thread_placement.h"
#include "pipeline/sample/function_watch.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/version_check.h"
#include "pipeline/worker.h"

namespace feedline::pipeline {

namespace {

// If a function has not returned this long after shutdown began, it may never return. This time is longer than
// functions usually take per sample, but short enough to wait after Ctrl-C.
constexpr std::chrono::seconds kPatience{2};
// The interval at which interrupts are checked.
constexpr std::chrono::milliseconds kPatienceAtEnd{50};
// Decompressed blocks may use this much memory even if batches need the whole budget: with less, many blocks would be
// decompressed for every value.
constexpr std::uint64_t kLeastBlockBytes = std::uint64_t{32} << 20;

}  // namespace

std::shared_ptr<device::Device> usual_device() { return device::host_device(); }

Result<std::shared_ptr<device::Device>> device_of(std::optional<int> cuda_device) {
  if (!cuda_device) return usual_device();
  return device::cuda_device(*cuda_device);
}

Pipeline::Pipeline(std::shared_ptr<const Recipe> recipe, PipelinePlan plan, std::shared_ptr<device::Device> device)
    : recipe_(std::move(recipe)),
      plan_(std::move(plan)),
      device_(std::move(device)),
      // ---- the source and all numbers of the plan: options are not used from here on
      policy_(plan_.on_error, plan_.error_budget),
      counters_(static_cast<std::size_t>(plan_.threads) + 1),
      progress_(static_cast<std::size_t>(plan_.threads)),
      // cache: memory for whole shards in transfer
      copy_memory_(std::make_unique<CopyMemory>(*recipe_, plan_)),
      // storage, format: prefetches the next samples of the plan, unless many rows are read at a time
      ahead_(ReadAhead::make(recipe_->gathers || recipe_->has_clips ? nullptr : recipe_->records, plan_,
                             base::test_conditions().read_ahead, PartReads::make(recipe_))),
      clips_(ClipAhead::make(recipe_, plan_, base::test_conditions().read_ahead)),
      // format: compares objects opened by a cached index
      versions_(recipe_->records ? VersionCheck::make(*recipe_->records) : nullptr),
      // batch, device: memory and destination of batches
      scheduler_(std::make_unique<BatchScheduler>(
          BatchScheduler::Parts{*recipe_, plan_, policy_, counters_, progress_, ahead_.get(), device_})) {
  if (recipe_->has_clips) decoders_ = std::make_shared<VideoDecoders>(plan_.decoder_budget);
  for (int i = 0; i < plan_.threads && recipe_->mapping; ++i) watches_.push_back(std::make_shared<FunctionWatch>());
  // ---- connections; the first epoch starts the threads
}

Result<void> Pipeline::begin(const EpochStart& start, bool prepare_next, bool feeds_gpu) {
  FEEDLINE_CHECK_OK(check_process());
  pid_ = getpid();
  // ---- the process: from here on locks are taken, and a forked child would find them locked

  // format: check that the objects are unchanged since they were indexed
  if (recipe_->records) recipe_->records->notice_changes();
  if (recipe_->records && recipe_->records->block_bytes() > 0)
    recipe_->records->limit_blocks(std::max(plan_.block_bytes, kLeastBlockBytes));
  if (versions_) FEEDLINE_CHECK_OK(versions_->begin());
  // plan: selects the samples, their order and their batches
  auto epoch = make_epoch(start);
  auto following = prepare_next && !plan_.is_given ? make_epoch({start.epoch + 1, 0, {}, 0}) : nullptr;
  // abandons the previous epoch; read-ahead continues here
  FEEDLINE_CHECK_OK(scheduler_->begin(start, std::move(epoch), std::move(following), feeds_gpu));
  if (clips_) clips_->begin(prepare_next);
  // decode, transform, batch: in threads, which later epochs reuse
  if (threads_.empty()) FEEDLINE_CHECK_OK(start_threads(feeds_gpu));
  // ---- the number of threads and their CPUs
  return {};
}

std::unique_ptr<Epoch> Pipeline::make_epoch(const EpochStart& start) const {
  return std::make_unique<Epoch>(
      Epoch::Config{.epoch = start.epoch,
                    .order = plan::make_order(plan_.order, start.epoch),
                    .plan = cut_of(plan_, start),
                    .in_order = plan_.in_order,
                    .selection = plan_.order.current ? plan_.order.current->get() : plan::Selection(),
                    .given = plan_.is_given,
                    .grain = RowFiller::grain(*recipe_, plan_.most_rows, plan_.threads),
                    .assign_at_open = plan_.layouts.empty(),
                    .prepares = scheduler_->prepares()},
      policy_);
}

Result<void> Pipeline::start_threads(bool feeds_gpu) {
  FEEDLINE_CHECK_OK(scheduler_->prepare());
  if (recipe_->mapping) FEEDLINE_CHECK_OK(recipe_->mapping->function->begin());
  // ---- the memory pinned by a device, before threads use it
  const auto placed = place_workers(plan_.threads, feeds_gpu);
  for (int i = 0; i < plan_.threads; ++i) {
    const auto worker = static_cast<std::size_t>(i);
    FEEDLINE_TRY(auto thread, base::Thread::start(
                                  "feedline-" + std::to_string(i),
                                  [this, worker, cpus = placed.empty() ? std::vector<int>() : placed[worker]] {
                                    if (!cpus.empty()) base::run_on(cpus);
                                    work(worker);
                                  },
                                  [this](Error error) { scheduler_->break_off(std::move(error)); }));
    threads_.push_back(std::move(thread));
  }
  return {};
}

// Runs in each worker thread: takes rows from the scheduler, reads, decodes and transforms samples in place, and
// returns the rows.
void Pipeline::work(std::size_t worker) {
  auto& stages = counters_[worker];
  RowFiller filler(recipe_, policy_, plan_.order.seed, &stages, ahead_.get(), memory::sample_limit(plan_.memory_budget),
                   watches_.empty() ? nullptr : watches_[worker], plan_.mix.get(), decoders_, clips_.get());
  Worker(worker, *scheduler_, filler, stages[static_cast<std::size_t>(telemetry::Stage::kBatch)], progress_[worker])
      .run();
}

Result<Loader::Polled> Pipeline::poll(std::chrono::milliseconds wait, Batch& batch) {
  FEEDLINE_CHECK_OK(check_process());
  if (pid_ == 0) return config_error("poll: no epoch has been started");
  if (!versions_) return scheduler_->poll(wait, batch);
  FEEDLINE_CHECK_OK(versions_->trouble());
  FEEDLINE_TRY(const Loader::Polled polled, scheduler_->poll(wait, batch));
  if (polled != Loader::Polled::kEnd) return polled;
  // this rank's plan may differ from other ranks', so the end of the epoch is not final
  FEEDLINE_TRY(const bool is_known, versions_->wait(std::min(wait, kPatienceAtEnd)));
  return is_known ? Loader::Polled::kEnd : Loader::Polled::kPending;
}

void Pipeline::stop() {
  if (!is_of_a_parent()) end();
}

// The consumer's part of shutdown: stops rows first, then threads, fetches and batches.
void Pipeline::end() {
  scheduler_->stop();
  if (ahead_) ahead_->cancel();  // threads may be blocked in a slow read
  if (clips_) clips_->cancel();
  if (versions_) versions_->stop();
  end_calls();
  threads_.clear();  // joins
  if (ahead_) ahead_->stop();
  if (clips_) clips_->stop();
  scheduler_->clear();
}

// Abandons threads whose function does not return (see FunctionWatch).
void Pipeline::end_calls() {
  if (!recipe_->mapping) return;
  for (const auto& watch : watches_) watch->close();
  recipe_->mapping->function->end();
  const auto until = FunctionWatch::Clock::now() + kPatience;
  for (std::size_t i = 0; i < threads_.size(); ++i)
    if (watches_[i]->give_up(until)) threads_[i].let_go();
}

Pipeline::~Pipeline() {
  if (!is_of_a_parent()) {
    end();
    return;
  }
  // a child after fork(): locks may be held by threads that do not exist here, and they cannot be joined
  static_cast<void>(scheduler_.release());
  static_cast<void>(ahead_.release());
  static_cast<void>(clips_.release());
  static_cast<void>(versions_.release());
  static_cast<void>(new std::vector<base::Thread>(std::move(threads_)));
}

bool Pipeline::is_of_a_parent() const {
  const pid_t began = pid_;
  return began != 0 && began != getpid();
}

Result<void> Pipeline::check_process() const {
  if (!is_of_a_parent()) return {};
  return config_error(
      "this loader was started before fork(), and its threads exist only in the parent: create a loader in the child");
}

// ---- given order ----

Result<void> Pipeline::check_given(const std::vector<GivenSample>& samples) const {
  if (!plan_.is_given) return config_error("give: this loader follows its own plan; use given_loader() instead");
  if (samples.empty() || samples.size() > plan_.ranks.batch_rows)
    return config_error("give: a batch must have between 1 and " + std::to_string(plan_.ranks.batch_rows) +
                        " samples, got " + std::to_string(samples.size()));
  for (const GivenSample& sample : samples)
    if (sample.index >= recipe_->format->size())
      return config_error("give: sample " + std::to_string(sample.index) + " is out of range: the dataset has " +
                          std::to_string(recipe_->format->size()));
  return {};
}

Result<void> Pipeline::give(std::vector<GivenSample> samples) {
  FEEDLINE_CHECK_OK(check_process());
  FEEDLINE_CHECK_OK(check_given(samples));
  return scheduler_->give(std::move(samples));
}

Result<void> Pipeline::end_giving() {
  FEEDLINE_CHECK_OK(check_process());
  return scheduler_->end_giving();
}

// ---- any thread ----

void Pipeline::interrupt() {
  if (!is_of_a_parent()) scheduler_->interrupt();
}

EpochStart Pipeline::position() const { return scheduler_->position(); }
bool Pipeline::has_batches() const { return scheduler_->has_batches(); }
std::vector<std::uint64_t> Pipeline::rows_per_rank() const { return scheduler_->rows_per_rank(); }
std::uint64_t Pipeline::changes() const { return scheduler_->changes(); }
std::vector<BadSample> Pipeline::bad_samples(std::uint64_t from) const { return scheduler_->bad_samples(from); }
std::uint64_t Pipeline::bad_count() const { return scheduler_->bad_count(); }

std::string Pipeline::explain_reads() const {
  const auto& records = recipe_->records;
  const auto storage = records ? records->storage() : nullptr;
  const std::string note = storage ? storage->summary() : std::string();
  const std::string ahead = ahead_ ? ahead_->explain() : clips_ ? clips_->explain() : std::string();
  std::string text = note + (note.empty() || ahead.empty() ? "" : "; ") + ahead;
  if (versions_) text += (text.empty() ? "" : "; ") + versions_->explain();
  return text;
}

std::string Pipeline::explain_device() const { return device_->is_host() ? "host memory" : device_->explain(); }

std::string Pipeline::explain_variable_size() const {
  if (plan_.variable_bytes == 0) return {};
  const std::uint64_t bytes = scheduler_->variable_bytes();
  const char* source = bytes != plan_.variable_bytes ? "as measured"
                       : plan_.variable_is_guess     ? "an estimate, until the first batch is measured"
                                                     : "according to the format";
  return "lists and padded fields: about " + std::to_string((bytes + 1023) / 1024) + " KiB per batch (" + source +
         "), including a copy of the data read";
}

void Pipeline::add_calls(LoaderStats& stats) const {
  if (!recipe_->mapping) return;
  stats.map.emplace();
  for (const auto& watch : watches_) {
    stats.map->calls += watch->calls();
    stats.map->run_s += static_cast<double>(watch->run_ns()) * 1e-9;
    stats.map->waited_s += static_cast<double>(watch->waited_ns()) * 1e-9;
  }
}

void Pipeline::add_second_requests(LoaderStats& stats) const {
  if (!recipe_->records) return;
  for (const auto& storage : recipe_->records->storages())
    if (const auto made = storage->second_requests()) {
      if (!stats.hedge) stats.hedge.emplace();
      stats.hedge->requests += made->made;
      stats.hedge->won += made->won;
      stats.hedge->dropped_bytes += made->dropped_bytes;
    }
}

LoaderStats Pipeline::stats() const {
  LoaderStats stats;
  stats.threads = plan_.threads;
  stats.budget_bytes = plan_.memory_budget;
  for (int s = 0; s < telemetry::kStages; ++s) {
    telemetry::StageTotals totals;
    for (const auto& thread : counters_) thread[static_cast<std::size_t>(s)].add_to(totals);
    constexpr double kNs = 1e-9;
    stats.stages.push_back({.name = std::string(telemetry::name_of(static_cast<telemetry::Stage>(s))),
                            .items = totals.items,
                            .bytes = totals.bytes,
                            .busy_s = static_cast<double>(totals.busy_ns) * kNs,
                            .blocked_s = static_cast<double>(totals.blocked_ns) * kNs,
                            .starved_s = static_cast<double>(totals.starved_ns) * kNs,
                            .latency_us = {totals.latency.begin(), totals.latency.end()}});
  }
  scheduler_->add_to(stats);
  add_calls(stats);
  add_second_requests(stats);
  if (decoders_) stats.video = decoders_->stats();
  return stats;
}

}  // namespace feedline::pipeline
