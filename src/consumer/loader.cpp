// SPDX-License-Identifier: Apache-2.0
#include "feedline/loader.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "consumer/loader_impl.h"
#include "plan/bucket_order.h"
#include "plan/plan.h"

namespace feedline {

using base::guarded;

namespace {

DatasetIdentity identity_of(const pipeline::Recipe& recipe) {
  const pipeline::Source source = pipeline::source_of(recipe);
  DatasetIdentity identity{
      source.fingerprint(), std::string(source.format_name()), source.size(), source.shard_ends().size(), {}};
  for (const FieldSpec& field : recipe.schema) identity.fields.push_back(field.name);
  return identity;
}

}  // namespace

Loader::Impl::Impl(std::shared_ptr<const pipeline::Recipe> recipe_in, pipeline::PipelinePlan plan_in)
    : recipe(std::move(recipe_in)),
      plan(std::move(plan_in)),
      identity(identity_of(*recipe)),
      epoch_plan(pipeline::whole_epoch(plan)),
      pipeline(recipe, plan) {}

Result<void> Loader::Impl::start_epoch(bool prepare) {
  pipeline::EpochStart start;
  start.epoch = next_epoch;
  if (restored) start = *restored;
  resumed = restored.has_value();
  prepare_next = prepare;
  FEEDLINE_CHECK_OK(pipeline.begin(start, prepare_next));
  const std::lock_guard lock(mutex);
  restored.reset();
  next_epoch = start.epoch + 1;
  running = true;
  return {};
}

Result<Loader::Polled> Loader::Impl::poll(std::chrono::milliseconds wait, Batch& batch) {
  if (!running) FEEDLINE_CHECK_OK(start_epoch(prepare_next));
  FEEDLINE_TRY(const Polled polled, pipeline.poll(wait, batch));
  if (auto failure = pipeline::cache_failure(*recipe)) return std::unexpected(std::move(*failure));
  if (polled == Polled::kBatch) resumed = false;
  if (polled != Polled::kEnd) return polled;
  {
    const std::lock_guard lock(mutex);
    running = false;
  }
  // the state was taken after an epoch's last batch: what follows is the next epoch, not an empty rest. Where other
  // ranks have a batch left and this one has none, the rest is empty.
  if (!resumed || pipeline.has_batches()) return polled;
  FEEDLINE_CHECK_OK(start_epoch(prepare_next));
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
  const std::lock_guard lock(mutex);
  LoaderState state{identity, o.seed, o.shuffle, o.shard_window, next_epoch, 0, {}, 0, {}, fidelity()};
  if (plan.order.buckets) state.buckets = plan.order.buckets->all();
  if (restored || running) {
    const pipeline::EpochStart at = restored ? *restored : pipeline.position();
    state.epoch = at.epoch;
    state.position = at.position;
    state.delivered = at.delivered;
    state.left_out = at.left_out;
  }
  return state;
}

namespace {

// What became of a dataset since a state was taken on it.
std::string difference(const DatasetIdentity& then, const DatasetIdentity& now) {
  const auto joined = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  };
  if (then.format.empty()) return "the state does not say how";  // states of version 1
  std::string text;
  const auto add = [&text](const std::string& what, const std::string& was, const std::string& is) {
    if (was != is) text += (text.empty() ? "" : "; ") + what + " " + was + " then, " + is + " now";
  };
  add("the format was", then.format, now.format);
  add("samples:", std::to_string(then.samples), std::to_string(now.samples));
  add("shards:", std::to_string(then.shards), std::to_string(now.shards));
  add("fields:", joined(then.fields), joined(now.fields));
  return text.empty() ? "as many samples of the same fields, but with other names, sizes, weights or in another order"
                      : text;
}

}  // namespace

Fidelity Loader::Impl::fidelity() const { return pipeline::fidelity_of(*recipe); }

Result<void> Loader::Impl::check_buckets(const LoaderState& state) const {
  const auto described = [](const std::vector<Bucket>& buckets) {
    std::string text;
    for (const Bucket& bucket : buckets)
      text += (text.empty() ? "" : ", ") + std::to_string(bucket.rows) + " up to " + std::to_string(bucket.bound);
    return text.empty() ? std::string("without buckets") : "with buckets of " + text;
  };
  const auto now = plan.order.buckets ? plan.order.buckets->all() : std::vector<Bucket>();
  if (state.buckets == now) return {};
  return config_error("load_state_dict: the state was taken " + described(state.buckets) + ", the loader is " +
                      described(now) + " (rows over all ranks): make it so that bounds and rows stay the same");
}

bool Loader::Impl::lies_between_batches(const LoaderState& state) const {
  if (!plan.order.buckets) return true;
  const auto order = plan::make_order(plan.order, state.epoch);
  const plan::BucketOrder& buckets = *order->as_buckets();
  return buckets.is_border(state.position) && std::ranges::all_of(state.delivered, [&](const Positions& span) {
           return buckets.is_border(span.begin) && buckets.is_border(span.end);
         });
}

Result<void> Loader::Impl::restore(const LoaderState& state) {
  const LoaderOptions& o = plan.options;
  if (state.dataset.fingerprint != identity.fingerprint)
    return config_error("load_state_dict: the state was taken on another dataset, or its samples have changed since: " +
                        difference(state.dataset, identity));
  if (state.seed != o.seed || state.shuffle != o.shuffle || state.shard_window != o.shard_window)
    return config_error("load_state_dict: the state was taken with seed=" + std::to_string(state.seed) +
                        ", shuffle=" + (state.shuffle ? "True" : "False") + ", a window of " +
                        std::to_string(state.shard_window) + " shards; make the loader with the same");
  if (state.fidelity != fidelity())
    return config_error("load_state_dict: the state was taken with decode(fidelity=\"" +
                        std::string(name_of(state.fidelity)) + "\"), the dataset now has \"" +
                        std::string(name_of(fidelity())) + "\", whose pixels are others: open it with the same");
  FEEDLINE_CHECK_OK(check_buckets(state));
  const std::uint64_t positions = epoch_plan.order().size();
  bool inside = state.position <= positions && state.left_out <= positions;
  for (const Positions& span : state.delivered)
    inside = inside && span.begin < span.end && span.end <= positions && span.begin >= state.position;
  if (!inside)
    return config_error("load_state_dict: the state is damaged: it lies outside an epoch of " +
                        std::to_string(positions) + " samples");
  if (!lies_between_batches(state))
    return config_error("load_state_dict: the state is damaged: it lies inside a batch of a bucket");
  pipeline::EpochStart start{state.epoch, state.position, plan::tidied(state.delivered, state.position),
                             state.left_out};
  // what epoch() says until then; rank 0 never has a batch less than another
  const plan::Plan rest(
      plan::make_order(plan.order, state.epoch),
      {o.batch_size, 0, o.world_size, o.drop_last, o.uneven, state.position, start.delivered, state.left_out});
  const std::lock_guard lock(mutex);
  restored = std::move(start);
  next_epoch = state.epoch + (rest.batches() == 0 ? 1 : 0);
  running = false;
  return {};
}

// What becomes of the samples that do not divide evenly.
std::string Loader::Impl::explain_shares() const {
  const LoaderOptions& o = plan.options;
  const std::uint64_t size = epoch_plan.order().size();
  const std::uint64_t most = epoch_plan.batches(0), least = epoch_plan.batches(o.world_size - 1);
  std::uint64_t delivered = 0;
  for (std::uint64_t rank = 0; rank < o.world_size; ++rank) delivered += epoch_plan.samples(rank);
  std::string text = "over all ranks: " + std::to_string(std::min(delivered, size)) + " of " + std::to_string(size) +
                     " samples an epoch";
  if (delivered < size) text += ", " + std::to_string(size - delivered) + " left out";
  if (delivered > size) text += ", " + std::to_string(delivered - size) + " of them twice";
  if (least < most)
    text += "; " + std::to_string(most) + " batches on the first ranks, " + std::to_string(least) +
            " on the last ones: join them, or the first will wait for ever";
  return text;
}

std::string Loader::Impl::explain_order() const {
  const LoaderOptions& o = plan.options;
  const pipeline::Source source = pipeline::source_of(*recipe);
  std::string text = std::to_string(source.size()) + " samples, ";
  if (source.is_mixture()) text += "mixed, " + std::to_string(source.positions()) + " an epoch, ";
  if (!o.shuffle) return text + "sequential";
  const std::uint64_t shards = source.shard_ends().size();
  if (o.shard_window > 0 && shards > 1)
    text += std::to_string(shards) + " shards permuted, " + std::to_string(std::min(o.shard_window, shards)) +
            " of them at a time";
  else
    text += "keyed permutation";
  return text + ", seed " + std::to_string(o.seed);
}

std::string Loader::Impl::explain_threads() const {
  const std::string all = std::to_string(plan.options.num_workers);
  const auto controller = pipeline.stats().controller;
  if (!controller) return all + " native, one sample at a time";
  std::string text = all + " native, one sample at a time; as many of them work as the training loop needs: " +
                     std::to_string(controller->threads) + " now, at most " + std::to_string(controller->limit) + ", ";
  if (controller->changed == 0) return text + "not changed so far";
  return text + "changed " + std::to_string(controller->changed) + " times, last \"" + controller->changes.back().why +
         "\"";
}

std::string Loader::Impl::explain_buckets() const {
  std::string text;
  if (!plan.order.buckets) return text;
  const plan::Buckets& buckets = *plan.order.buckets;
  for (std::uint64_t b = 0; b < buckets.size(); ++b)
    text += "bucket     up to " + std::to_string(buckets[b].bound) + ": " + std::to_string(buckets.members(b).size()) +
            " samples, batches of " + std::to_string(buckets[b].rows / plan.options.world_size) + "\n";
  return text;
}

std::string Loader::Impl::explain() const {
  const LoaderOptions& o = plan.options;
  const auto rounded = [](std::uint64_t bytes) {
    return bytes < (1u << 20) ? std::to_string((bytes + (1u << 9)) >> 10) + " KiB"
                              : std::to_string((bytes + (1u << 19)) >> 20) + " MiB";
  };
  std::string text;
  text += "plan       " + explain_order() + ", rank " + std::to_string(o.rank) + " of " + std::to_string(o.world_size) +
          ": " + std::to_string(epoch_plan.batches()) + " batches of " + (plan.order.buckets ? "up to " : "") +
          std::to_string(o.batch_size) + "\n";
  text += explain_buckets();
  if (!o.given_order) text += "           " + explain_shares() + "\n";
  const pipeline::Source source = pipeline::source_of(*recipe);
  text += "format     " + std::string(source.format_name()) + ", " + source.name() + "\n";
  if (const std::string summary = source.summary(); !summary.empty()) text += "           " + summary + "\n";
  for (const std::string& line : pipeline::explain_images(*recipe)) text += "image      " + line + "\n";
  for (const FieldSpec& field : recipe->schema)
    text += "field      " + field.name + ": " + std::string(name_of(field.array.dtype)) + " " +
            field.array.shape.to_string() + "\n";
  text += "threads    " + explain_threads() + "\n";
  if (const std::string reads = pipeline.explain_reads(); !reads.empty()) text += "reads      " + reads + "\n";
  text += "memory     " + std::to_string(plan.slots) + " batches of " + rounded(plan.batch_bytes) + " ahead" +
          (plan.most_slots > plan.slots ? ", " + std::to_string(plan.most_slots) + " for a loop that comes in bursts"
                                        : "") +
          "; budget " + rounded(o.memory_budget) + " (" + plan.budget_reason + ")\n";
  if (const std::string late = pipeline.explain_late(); !late.empty()) text += "           " + late + "\n";
  text += "delivery   host memory, " +
          std::string(o.in_order          ? "in order"
                      : o.world_size == 1 ? "as batches complete"
                                          : "in order, as there are several ranks") +
          "\n";
  return text;
}

// ---- the public class ----

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

std::uint64_t Loader::batches() const { return impl_->epoch_plan.batches(); }
const Schema& Loader::schema() const { return impl_->recipe->schema; }
const LoaderOptions& Loader::options() const { return impl_->plan.options; }
Result<std::vector<std::uint64_t>> Loader::rows_per_rank() const {
  return impl_->asked([&] { return impl_->pipeline.rows_per_rank(); });
}
Result<void> Loader::start_epoch(bool prepare_next) {
  return guarded([&] { return impl_->start_epoch(prepare_next); });
}
void Loader::set_epoch(std::uint64_t epoch) {
  if (!impl_->pipeline.check_process()) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->next_epoch = epoch;
}
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
void Loader::interrupt() { impl_->pipeline.interrupt(); }
Result<LoaderStats> Loader::stats() const {
  return impl_->asked([&] {
    LoaderStats stats = impl_->pipeline.stats();
    stats.cache = pipeline::cache_stats(*impl_->recipe);
    return stats;
  });
}
std::uint64_t Loader::changes() const { return impl_->pipeline.changes(); }
void Loader::leave_a_cpu() {
  static_cast<void>(guarded([&]() -> Result<void> {  // where it fails, the loader has one CPU more
    FEEDLINE_CHECK_OK(impl_->pipeline.check_process());
    impl_->pipeline.leave_a_cpu();
    return {};
  }));
}
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
Result<std::string> Loader::explain() const {
  return impl_->asked([&] { return impl_->explain(); });
}
void Loader::close() { impl_->pipeline.stop(); }

}  // namespace feedline
