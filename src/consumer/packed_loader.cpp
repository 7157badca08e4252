// SPDX-License-Identifier: Apache-2.0
// Loaders of packed sequences: the consumer gives the pipeline this rank's rows of each global batch.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/guarded.h"
#include "consumer/loader_impl.h"
#include "consumer/restoring.h"
#include "feedline/dataset.h"
#include "pipeline/pipeline.h"
#include "pipeline/sample/pack_source.h"

namespace feedline {

using base::guarded;

struct PackedDataset::Impl {
  pipeline::PackSource source;
};

namespace {

// Batches queued in addition to those that the pipeline may fill ahead, so that it never waits for the consumer.
constexpr std::uint64_t kSpare = 2;

Result<void> check(const LoaderOptions& options, std::uint64_t length) {
  if (options.sampling || options.repeat != 1)
    return config_error("pack_sequences: weights, samplers and repeat are not supported");
  if (!options.bucket_bounds.empty() || options.buckets > 0 || options.max_tokens > 0)
    return config_error("pack_sequences: buckets and max_tokens are not supported: all rows have the same length");
  if (options.on_error != OnError::kRaise)
    return config_error("pack_sequences: only on_error=\"raise\" is supported: rows are planned before they are read");
  if (!options.in_order) return config_error("pack_sequences: only in_order=True is supported");
  if (options.shard_window > 0 && !options.shuffle) return config_error("loader: shard_window needs shuffle=True");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;  // ends of segments are int32
  if (options.batch_size && *options.batch_size > (kMost - 1) / length)
    return config_error("pack_sequences: a batch of " + std::to_string(*options.batch_size) + " rows of " +
                        std::to_string(length) + " tokens has 2^31 tokens or more; lower batch_size or length");
  return {};
}

// The identity of the documents and of the options that determine packs.
DatasetIdentity identity_of(const pipeline::PackSource& source, const pipeline::Recipe& recipe,
                            std::uint64_t shard_window) {
  const pipeline::Source sequences = source.sequences();
  DatasetIdentity identity{.fingerprint = source.fingerprint(),
                           .format = std::string(sequences.format_name()) + ", packed (" + source.describe() + ")",
                           .samples = sequences.size(),
                           .shards = sequences.shard_ends().size(),
                           .fields = {},
                           .blocks = consumer::blocks_of(sequences, shard_window)};
  for (const FieldSpec& field : recipe.schema) identity.fields.push_back(field.name);
  return identity;
}

}  // namespace

PackedDataset::PackedDataset(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::uint64_t PackedDataset::documents() const { return impl_->source.sequences().size(); }

Result<PackedDataset> Dataset::pack_sequences(const PackOptions& options) const {
  return guarded([&]() -> Result<PackedDataset> {
    FEEDLINE_TRY(auto sequences, packable());
    FEEDLINE_TRY(auto source, pipeline::PackSource::make(sequences, options));
    return PackedDataset(std::make_shared<const PackedDataset::Impl>(std::move(source)));
  });
}

Result<Loader> PackedDataset::loader(const LoaderOptions& options, std::optional<PackLabels> labels) const {
  return guarded([&]() -> Result<Loader> {
    const pipeline::PackSource source = impl_->source.with_own_packs(labels.value_or(impl_->source.options().labels));
    FEEDLINE_CHECK_OK(check(options, source.options().length));
    FEEDLINE_TRY(auto device, pipeline::device_of(options.cuda_device));
    FEEDLINE_TRY(auto recipe, pipeline::make_recipe(source.packs(), {}, options.dtype, options.layout));
    FEEDLINE_TRY(auto plan, pipeline::plan_given(*recipe, options));
    plan.order.shuffle = options.shuffle;  // of the documents: only for states
    plan.order.shard_window = options.shard_window;
    auto identity = identity_of(source, *recipe, options.shard_window);
    auto feed = std::make_unique<consumer::PackFeed>(source, options, plan.ranks.batch_rows);
    return Loader(std::make_unique<Loader::Impl>(std::move(recipe), options, std::move(plan), std::move(device),
                                                 std::move(identity), std::move(feed)));
  });
}

Result<void> Loader::Impl::start_packs(const EpochOptions& given) {
  FEEDLINE_CHECK_OK(pipeline.check_process());
  const consumer::PackPosition start = restored_packs.value_or(consumer::PackPosition{.epoch = next_epoch});
  epoch_options = given;
  {
    const std::lock_guard lock(mutex);
    FEEDLINE_CHECK_OK(packs->start(start));
  }
  FEEDLINE_CHECK_OK(pipeline.begin({.epoch = start.epoch, .delivered = {}}, false, given.feeds_gpu));
  {
    const std::lock_guard lock(mutex);
    restored_packs.reset();
    next_epoch = start.epoch + 1;
    running = true;
    all_given = false;
  }
  return give_packs();
}

// Keeps enough batches queued.
Result<void> Loader::Impl::give_packs() {
  const std::uint64_t most = std::max(pipeline.plan().slots, pipeline.plan().most_slots) + kSpare;
  const std::uint64_t delivered = packs_delivered();
  while (!all_given && packs->given() < delivered + most) {
    if (auto samples = packs->next()) {
      FEEDLINE_CHECK_OK(pipeline.give(*std::move(samples)));
    } else {
      all_given = true;
      FEEDLINE_CHECK_OK(pipeline.end_giving());
    }
  }
  return {};
}

// Returns the number of batches of this run that were delivered or returned as an error.
std::uint64_t Loader::Impl::packs_delivered() const {
  const plan::PlanConfig& ranks = pipeline.plan().ranks;
  return pipeline.position().position / (ranks.batch_rows * ranks.world_size);
}

namespace {

// Removes the advice to skip the sample, which packs do not support.
Error without_advice(Error error) {
  constexpr std::string_view kAdvice = "; on_error=\"skip\" skips such samples";
  if (error.what.ends_with(kAdvice)) error.what.resize(error.what.size() - kAdvice.size());
  return error;
}

}  // namespace

Result<Loader::Polled> Loader::Impl::poll_packs(std::chrono::milliseconds wait, Batch& batch) {
  if (!running) FEEDLINE_CHECK_OK(start_packs(epoch_options));
  FEEDLINE_CHECK_OK(give_packs());
  auto polled = pipeline.poll(wait, batch);
  const std::uint64_t delivered = packs_delivered();
  const std::lock_guard lock(mutex);
  packs->note_delivered(delivered);
  if (!polled) return std::unexpected(without_advice(std::move(polled).error()));
  if (*polled == Polled::kEnd) running = false;
  return polled;
}

void Loader::Impl::add_packs(LoaderState& state) const {
  const auto at = restored_packs ? *restored_packs
                  : running      ? packs->position()
                                 : consumer::PackPosition{.epoch = next_epoch};
  state.epoch = at.epoch;
  state.position = at.packs;
  state.packing = PackState{at.window, at.pack};
}

Result<void> Loader::Impl::restore_packs(const LoaderState& state) {
  FEEDLINE_CHECK_OK(consumer::check_identity(state, identity, pipeline::fidelity_of(*recipe), pipeline.plan()));
  if (!state.packing) return config_error("load_state_dict: the state is damaged: the position of the pack is missing");
  consumer::PackPosition at{state.epoch, state.packing->window, state.packing->pack, state.position};
  const std::lock_guard lock(mutex);
  FEEDLINE_TRY(const bool has_batch, packs->has_batch(at));
  if (!has_batch) at = {.epoch = state.epoch + 1};  // saved after the last batch
  restored_packs = at;
  next_epoch = at.epoch;
  running = false;
  return {};
}

Result<std::optional<PackSegments>> Loader::segments(const Batch& batch) const {
  return impl_->asked([&]() -> std::optional<PackSegments> {
    if (!impl_->packs || batch.samples().empty()) return std::nullopt;
    return impl_->packs->source().segments_of(batch.samples().front());
  });
}

Result<std::uint64_t> Loader::batches_in(std::uint64_t epoch) const {
  return impl_->asked([&] { return impl_->packs ? impl_->packs->batches(epoch) : batches(); });
}

Result<PackCounts> Loader::pack_counts(std::uint64_t epoch, std::optional<std::uint64_t> windows) const {
  return guarded([&]() -> Result<PackCounts> {
    FEEDLINE_CHECK_OK(impl_->pipeline.check_process());
    if (!impl_->packs) return config_error("pack_counts: this loader does not pack sequences");
    return impl_->packs->count(epoch, windows);
  });
}

}  // namespace feedline
