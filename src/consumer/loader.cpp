// SPDX-License-Identifier: Apache-2.0
#include "feedline/loader.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "consumer/guarded.h"
#include "consumer/loader_impl.h"
#include "plan/plan.h"

namespace feedline {

using consumer::guarded;

Loader::Impl::Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, pipeline::PipelinePlan plan_in)
    : recipe(std::move(recipe_in)), plan(std::move(plan_in)), pipeline(recipe, plan) {}

Result<void> Loader::Impl::start_epoch() {
  pipeline::Pipeline::Start start;
  start.epoch = next_epoch;
  if (restored) start = *restored;
  resumed = restored.has_value();
  FEEDLINE_CHECK_OK(pipeline.begin(start));
  restored.reset();
  next_epoch = start.epoch + 1;
  running = true;
  return {};
}

Result<Loader::Polled> Loader::Impl::poll(std::chrono::milliseconds wait, Batch& batch) {
  if (!running) FEEDLINE_CHECK_OK(start_epoch());
  FEEDLINE_TRY(const Polled polled, pipeline.poll(wait, batch));
  if (polled == Polled::kBatch) resumed = false;
  if (polled != Polled::kEnd) return polled;
  running = false;
  if (!resumed) return polled;
  // the state was taken after an epoch's last batch: what follows is the next epoch, not an empty rest
  FEEDLINE_CHECK_OK(start_epoch());
  return pipeline.poll(wait, batch);
}

Result<std::optional<Batch>> Loader::Impl::next() {
  // wakes up now and then only to look at the clock of `timeout`
  constexpr std::chrono::milliseconds kWait{1000};
  while (true) {
    Batch batch;
    FEEDLINE_TRY(const Polled polled, poll(kWait, batch));
    if (polled == Polled::kBatch) return batch;
    if (polled == Polled::kEnd) return std::nullopt;
  }
}

LoaderState Loader::Impl::state() const {
  const LoaderOptions& o = plan.options;
  LoaderState state{recipe->format->fingerprint(), o.seed, o.shuffle, next_epoch, 0, o.batch_size, o.world_size, 0, {}};
  if (restored || running) {
    const pipeline::Pipeline::Start at = restored ? *restored : pipeline.position();
    state.epoch = at.epoch;
    state.batch = at.batch;
    state.refilled = at.refilled;
    state.ahead = at.ahead;
  }
  return state;
}

Result<void> Loader::Impl::restore(const LoaderState& state) {
  const LoaderOptions& o = plan.options;
  if (state.fingerprint != recipe->format->fingerprint())
    return config_error("load_state_dict: the state was taken on another data set, or its samples have changed since");
  if (state.seed != o.seed || state.shuffle != o.shuffle)
    return config_error("load_state_dict: the state was taken with seed=" + std::to_string(state.seed) +
                        ", shuffle=" + (state.shuffle ? "True" : "False") + "; make the loader with the same");
  if (state.batch_size * state.world_size != o.batch_size * o.world_size)
    return config_error("load_state_dict: the state was taken with a global batch of " +
                        std::to_string(state.batch_size) + " x " + std::to_string(state.world_size) +
                        " ranks; batch_size x world_size must stay the same");
  if ((state.refilled > 0 || !state.ahead.empty()) && state.world_size != o.world_size)
    return config_error(
        "load_state_dict: a state with skipped samples or out-of-order batches needs the same world_size");
  restored = pipeline::Pipeline::Start{state.epoch, state.batch, state.refilled, state.ahead};
  running = false;
  return {};
}

std::uint64_t Loader::Impl::batches() const {
  const LoaderOptions& o = plan.options;
  return plan::Plan(
             {recipe->format->size(), o.batch_size, o.seed, 0, false, o.drop_last, o.rank, o.world_size, o.uneven})
      .batches();
}

// What becomes of the samples that do not divide evenly.
std::string Loader::Impl::explain_shares() const {
  const LoaderOptions& o = plan.options;
  const std::uint64_t size = recipe->format->size();
  std::uint64_t delivered = 0;
  for (std::uint64_t rank = 0; rank < o.world_size; ++rank) {
    const plan::Plan share({size, o.batch_size, o.seed, 0, false, o.drop_last, rank, o.world_size, o.uneven});
    delivered += std::min(share.positions(), share.batches() * o.batch_size);
  }
  std::string text = "over all ranks: " + std::to_string(std::min(delivered, size)) + " of " + std::to_string(size) +
                     " samples an epoch";
  if (delivered < size) text += ", " + std::to_string(size - delivered) + " left out";
  if (delivered > size) text += ", " + std::to_string(delivered - size) + " of them twice";
  return text;
}

std::string Loader::Impl::explain() const {
  const LoaderOptions& o = plan.options;
  const auto mib = [](std::uint64_t bytes) { return std::to_string((bytes + (1u << 19)) >> 20) + " MiB"; };
  std::string text;
  text += "plan       " + std::to_string(recipe->format->size()) + " samples, " +
          (o.shuffle ? "keyed permutation, seed " + std::to_string(o.seed) : std::string("sequential")) + ", rank " +
          std::to_string(o.rank) + " of " + std::to_string(o.world_size) + ": " + std::to_string(batches()) +
          " batches of " + std::to_string(o.batch_size) + "\n";
  if (!o.given_order) text += "           " + explain_shares() + "\n";
  text += "format     " + std::string(recipe->format->name()) + ", " + recipe->dataset + "\n";
  if (const std::string summary = recipe->format->summary(); !summary.empty()) text += "           " + summary + "\n";
  if (recipe->chain)
    for (const std::string& line : recipe->chain->explain()) text += "image      " + line + "\n";
  for (const FieldSpec& field : recipe->schema)
    text += "field      " + field.name + ": " + std::string(name_of(field.array.dtype)) + " " +
            field.array.shape.to_string() + "\n";
  text += "threads    " + std::to_string(o.num_workers) + " native, one sample at a time\n";
  text += "memory     " + std::to_string(plan.slots) + " batches of " + mib(plan.batch_bytes) + " ahead; budget " +
          mib(o.memory_budget) + " (" + plan.budget_reason + ")\n";
  text += "delivery   host memory, " + std::string(o.in_order ? "in order" : "as batches complete") + "\n";
  return text;
}

// ---- the public class ----

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

std::uint64_t Loader::batches() const { return impl_->batches(); }
const Schema& Loader::schema() const { return impl_->recipe->schema; }
const LoaderOptions& Loader::options() const { return impl_->plan.options; }
Result<void> Loader::start_epoch() {
  return guarded([&] { return impl_->start_epoch(); });
}
void Loader::set_epoch(std::uint64_t epoch) { impl_->next_epoch = epoch; }
std::uint64_t Loader::epoch() const { return impl_->running ? impl_->next_epoch - 1 : impl_->next_epoch; }
Result<void> Loader::give(std::vector<GivenSample> samples) {
  return guarded([&] { return impl_->pipeline.give(std::move(samples)); });
}
Result<void> Loader::end_giving() {
  return guarded([&] { return impl_->pipeline.end_giving(); });
}
Result<std::optional<Batch>> Loader::next() {
  return guarded([&] { return impl_->next(); });
}
Result<Loader::Polled> Loader::poll(std::chrono::milliseconds wait, Batch& batch) {
  return guarded([&] { return impl_->poll(wait, batch); });
}
LoaderStats Loader::stats() const { return impl_->pipeline.stats(); }
std::vector<BadSample> Loader::errors() const { return impl_->pipeline.bad_samples(); }
LoaderState Loader::state() const { return impl_->state(); }
Result<void> Loader::restore(const LoaderState& state) {
  return guarded([&] { return impl_->restore(state); });
}
std::string Loader::explain() const { return impl_->explain(); }
void Loader::close() { impl_->pipeline.stop(); }

}  // namespace feedline
