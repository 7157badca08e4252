// SPDX-License-Identifier: Apache-2.0
#include "feedline/loader.h"

#include <utility>

#include "base/guarded.h"
#include "consumer/explanation.h"
#include "consumer/loader_impl.h"
#include "consumer/restoring.h"
#include "plan/buckets.h"

namespace feedline {

using base::guarded;

Loader::Impl::Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, const LoaderOptions& options_in,
                   pipeline::PipelinePlan plan_in, std::shared_ptr<device::Device> device)
    : Impl(recipe_in, options_in, std::move(plan_in), std::move(device),
           consumer::identity_of(*recipe_in, options_in.shard_window), nullptr) {}

Loader::Impl::Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, const LoaderOptions& options_in,
                   pipeline::PipelinePlan plan_in, std::shared_ptr<device::Device> device, DatasetIdentity identity_in,
                   std::unique_ptr<consumer::PackFeed> packs_in)
    : recipe(std::move(recipe_in)),
      options(options_in),
      identity(std::move(identity_in)),
      pipeline(recipe, std::move(plan_in), std::move(device)),
      packs(std::move(packs_in)),
      selection(pipeline.plan().order.current, pipeline.plan().order.size, options_in.world_size),
      schema(pipeline::schema_of(*recipe, pipeline.plan())),
      epoch_plan(pipeline::whole_epoch(pipeline.plan())),
      batches(epoch_plan.batches()) {}

namespace {

bool is_amid(const pipeline::EpochStart& start) { return start.position > 0 || !start.delivered.empty(); }

}  // namespace

void Loader::Impl::note_selection() {
  plan::Plan whole = pipeline::whole_epoch(pipeline.plan());
  const std::lock_guard lock(mutex);
  epoch_plan = std::move(whole);
  batches = epoch_plan.batches();
}

Result<void> Loader::Impl::start_epoch(const EpochOptions& given) {
  if (packs) return start_packs(given);
  pipeline::EpochStart start;
  start.epoch = next_epoch;
  if (restored) start = *restored;
  resumed = restored.has_value();
  epoch_options = given;
  if (const plan::Selection before = selection.now(); !is_amid(start)) {
    selection.begin(start.epoch);
    if (selection.now() != before) note_selection();
  }
  FEEDLINE_CHECK_OK(pipeline.begin(start, given.prepare_next, given.feeds_gpu));
  const std::lock_guard lock(mutex);
  restored.reset();
  next_epoch = start.epoch + 1;
  running = true;
  return {};
}

Result<Loader::Polled> Loader::Impl::poll(std::chrono::milliseconds wait, Batch& batch) {
  if (packs) return poll_packs(wait, batch);
  if (!running) FEEDLINE_CHECK_OK(start_epoch(epoch_options));
  FEEDLINE_TRY(const Polled polled, pipeline.poll(wait, batch));
  if (auto failure = pipeline::lasting_failure(*recipe)) return std::unexpected(std::move(*failure));
  if (polled == Polled::kBatch) resumed = false;
  if (polled != Polled::kEnd) return polled;
  {
    const std::lock_guard lock(mutex);
    running = false;
  }
  pipeline::write_checkpoints(*recipe);
  // The state was saved after an epoch's last batch: start the next epoch. If other ranks have batches left, this
  // rank's epoch ends without a batch.
  if (!resumed || pipeline.has_batches()) return polled;
  FEEDLINE_CHECK_OK(start_epoch(epoch_options));
  return pipeline.poll(wait, batch);
}

LoaderState Loader::Impl::state() const {
  const plan::OrderConfig& order = pipeline.plan().order;
  const std::lock_guard lock(mutex);
  LoaderState state{.dataset = identity,
                    .seed = order.seed,
                    .shuffle = order.shuffle,
                    .shard_window = order.shard_window,
                    .epoch = next_epoch,
                    .delivered = {},
                    .buckets = {},
                    .repeat = order.repeat,
                    .mix = {},
                    .fidelity = pipeline::fidelity_of(*recipe)};
  if (packs) {
    add_packs(state);
    return state;
  }
  if (order.buckets) state.buckets = order.buckets->all();
  if (restored || running) {
    const pipeline::EpochStart at = restored ? *restored : pipeline.position();
    state.epoch = at.epoch;
    state.position = at.position;
    state.delivered = at.delivered;
    state.left_out = at.left_out;
  }
  const bool begins = !running && !(restored && is_amid(*restored));
  consumer::describe(begins ? selection.next(state.epoch) : selection.now(), state);
  return state;
}

Result<void> Loader::Impl::restore(const LoaderState& state) {
  if (packs) return restore_packs(state);
  const pipeline::PipelinePlan& plan = pipeline.plan();
  FEEDLINE_CHECK_OK(consumer::check_identity(state, identity, pipeline::fidelity_of(*recipe), plan));
  FEEDLINE_TRY(const plan::Selection taken_with, selection.taken_with(state));
  const plan::Selection before = selection.now();
  selection.resume(taken_with);
  auto placed = consumer::start_of(state, plan);
  if (!placed) {
    selection.resume(before);
    return std::unexpected(std::move(placed).error());
  }
  pipeline::EpochStart start = std::move(*placed);
  if (taken_with != before) note_selection();
  // epoch() until then; rank 0 never has fewer batches than another
  plan::PlanConfig first_rank = cut_of(plan, start);
  first_rank.rank = 0;
  const plan::Plan rest(plan::make_order(plan.order, start.epoch), first_rank);
  const std::lock_guard lock(mutex);
  restored = std::move(start);
  next_epoch = state.epoch + (rest.batches() == 0 ? 1 : 0);
  running = false;
  return {};
}

// ---- the public class ----

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

std::uint64_t Loader::batches() const {
  // in a child after fork(), a lock may be held by a thread that does not exist here
  if (impl_->packs && impl_->pipeline.check_process()) impl_->batches = impl_->packs->batches(epoch());
  return impl_->batches;
}
const Schema& Loader::schema() const { return impl_->schema; }
const LoaderOptions& Loader::options() const { return impl_->options; }
Result<std::vector<std::uint64_t>> Loader::rows_per_rank() const {
  return impl_->asked([&] {
    if (!impl_->packs) return impl_->pipeline.rows_per_rank();
    const std::lock_guard lock(impl_->mutex);
    return impl_->packs->rows_per_rank();
  });
}
Result<void> Loader::start_epoch(const EpochOptions& options) {
  return guarded([&] { return impl_->start_epoch(options); });
}
void Loader::set_epoch(std::uint64_t epoch) {
  if (!impl_->pipeline.check_process()) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->next_epoch = epoch;
}
std::uint64_t Loader::epoch() const { return impl_->running ? impl_->next_epoch - 1 : impl_->next_epoch; }
std::uint64_t Loader::next_epoch() const { return impl_->next_epoch; }
Result<void> Loader::set_sampling(std::shared_ptr<const Sampling> sampling) {
  return guarded([&]() -> Result<void> {
    FEEDLINE_CHECK_OK(impl_->pipeline.check_process());
    return impl_->selection.set_sampling(std::move(sampling));
  });
}
Result<void> Loader::set_mix_weights(const std::vector<double>& weights) {
  return guarded([&]() -> Result<void> {
    FEEDLINE_CHECK_OK(impl_->pipeline.check_process());
    return impl_->selection.set_mix_weights(weights);
  });
}
Result<void> Loader::give(std::vector<GivenSample> samples) {
  return guarded([&] { return impl_->pipeline.give(std::move(samples)); });
}
Result<void> Loader::end_giving() {
  return guarded([&] { return impl_->pipeline.end_giving(); });
}
Result<std::optional<Batch>> Loader::next() {
  // wakes up periodically only to check `timeout`
  constexpr std::chrono::milliseconds kWait{1000};
  while (true) {
    Batch batch;
    FEEDLINE_TRY(const Polled polled, poll(kWait, batch));
    if (polled == Polled::kBatch) return batch;
    if (polled == Polled::kEnd) return std::nullopt;
  }
}
Result<Loader::Polled> Loader::poll(std::chrono::milliseconds wait, Batch& batch) {
  return guarded([&] { return impl_->poll(wait, batch); });
}
void Loader::interrupt() { impl_->pipeline.interrupt(); }
Result<LoaderStats> Loader::stats() const {
  return impl_->asked([&] {
    LoaderStats stats = impl_->pipeline.stats();
    stats.cache = pipeline::cache_stats(*impl_->recipe);
    stats.checkpoints = pipeline::checkpoint_stats(*impl_->recipe);
    stats.blocks = pipeline::block_stats(*impl_->recipe);
    return stats;
  });
}
std::uint64_t Loader::changes() const { return impl_->pipeline.changes(); }
Result<std::vector<BadSample>> Loader::errors(std::uint64_t from) const {
  return impl_->asked([&] { return impl_->pipeline.bad_samples(from); });
}
Result<std::uint64_t> Loader::error_count() const {
  return impl_->asked([&] { return impl_->pipeline.bad_count(); });
}
Result<LoaderState> Loader::state() const {
  return impl_->asked([&] { return impl_->state(); });
}
Result<void> Loader::restore(const LoaderState& state) {
  return guarded([&]() -> Result<void> {
    FEEDLINE_CHECK_OK(impl_->pipeline.check_process());
    return impl_->restore(state);
  });
}
Result<std::string> Loader::warning() const {
  return impl_->asked([&] { return consumer::costly_reads(*impl_->recipe, impl_->pipeline, impl_->packs.get()); });
}
Result<std::string> Loader::explain() const {
  return impl_->asked([&] {
    const std::lock_guard lock(impl_->mutex);
    return consumer::explain(*impl_->recipe, impl_->pipeline, impl_->epoch_plan, impl_->options, impl_->packs.get());
  });
}
void Loader::close() {
  impl_->pipeline.stop();
  if (impl_->pipeline.check_process()) pipeline::write_checkpoints(*impl_->recipe);
}

}  // namespace feedline
