// SPDX-License-Identifier: Apache-2.0
#include "consumer/restoring.h"

#include <algorithm>
#include <string>
#include <vector>

#include "pipeline/sample/source.h"
#include "plan/bucket_order.h"

namespace feedline::consumer {
namespace {

std::string argument_of(Fidelity fidelity) {
  return fidelity == Fidelity::kNvjpeg ? "device=\"cuda\"" : "fidelity=\"" + std::string(name_of(fidelity)) + "\"";
}

// Describes how a dataset has changed since a state was saved.
std::string difference(const DatasetIdentity& then, const DatasetIdentity& now) {
  const auto joined = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  };
  if (then.format.empty()) return "the state does not record what has changed";  // states of version 1
  std::string text;
  const auto add = [&text](const std::string& what, const std::string& was, const std::string& is) {
    if (was != is) text += (text.empty() ? "" : "; ") + what + " " + was + " then, " + is + " now";
  };
  add("the format was", then.format, now.format);
  add("samples:", std::to_string(then.samples), std::to_string(now.samples));
  add("shards:", std::to_string(then.shards), std::to_string(now.shards));
  add("fields:", joined(then.fields), joined(now.fields));
  return text.empty() ? "the numbers of samples and fields are the same, but names, sizes, weights or the order differ"
                      : text;
}

// Describes what shuffle="shards" permutes.
std::string permuted(const DatasetIdentity& identity) {
  return identity.blocks > 0 ? std::to_string(identity.blocks) + " row groups or record batches"
                             : std::to_string(identity.shards) + " files";
}

Result<void> check_buckets(const LoaderState& state, const pipeline::PipelinePlan& plan) {
  const auto described = [](const std::vector<Bucket>& buckets) {
    std::string text;
    for (const Bucket& bucket : buckets)
      text += (text.empty() ? "" : ", ") + std::to_string(bucket.rows) + " up to " + std::to_string(bucket.bound);
    return text.empty() ? std::string("without buckets") : "with buckets of " + text;
  };
  const auto now = plan.order.buckets ? plan.order.buckets->all() : std::vector<Bucket>();
  if (state.buckets == now) return {};
  return config_error("load_state_dict: the state was saved " + described(state.buckets) +
                      ", but the loader was created " + described(now) +
                      " (rows over all ranks): use the same bounds and rows");
}

bool lies_between_batches(const LoaderState& state, const pipeline::PipelinePlan& plan) {
  if (!plan.order.buckets) return true;
  const auto order = plan::make_order(plan.order, state.epoch);
  const plan::BucketOrder& buckets = *order->as_buckets();
  return buckets.is_border(state.position) && std::ranges::all_of(state.delivered, [&](const Positions& span) {
           return buckets.is_border(span.begin) && buckets.is_border(span.end);
         });
}

Result<void> check_place(const LoaderState& state, const pipeline::PipelinePlan& plan) {
  const std::uint64_t positions = plan::make_order(plan.order, state.epoch)->size();
  bool inside = state.position <= positions && state.left_out <= positions;
  for (const Positions& span : state.delivered)
    inside = inside && span.begin < span.end && span.end <= positions && span.begin >= state.position;
  if (!inside)
    return config_error("load_state_dict: the state is damaged: its position is outside an epoch of " +
                        std::to_string(positions) + " samples");
  if (!lies_between_batches(state, plan))
    return config_error("load_state_dict: the state is damaged: its position is inside a batch of a bucket");
  return {};
}

}  // namespace

std::uint64_t blocks_of(const pipeline::Source& source, std::uint64_t shard_window) {
  const auto ends = source.block_ends();
  return shard_window == 0 || ends == source.shard_ends() ? 0 : ends.size();
}

DatasetIdentity identity_of(const pipeline::Recipe& recipe, std::uint64_t shard_window) {
  const pipeline::Source source = pipeline::source_of(recipe);
  DatasetIdentity identity{.fingerprint = source.fingerprint(),
                           .format = std::string(source.format_name()),
                           .samples = source.size(),
                           .shards = source.shard_ends().size(),
                           .fields = {},
                           .blocks = blocks_of(source, shard_window)};
  for (const FieldSpec& field : recipe.schema) identity.fields.push_back(field.name);
  return identity;
}

Result<void> check_identity(const LoaderState& state, const DatasetIdentity& now, Fidelity fidelity,
                            const pipeline::PipelinePlan& plan) {
  if (state.dataset.fingerprint != now.fingerprint)
    return config_error("load_state_dict: the state is from another dataset, or its samples have changed since: " +
                        difference(state.dataset, now));
  if (state.seed != plan.order.seed || state.shuffle != plan.order.shuffle ||
      state.shard_window != plan.order.shard_window)
    return config_error("load_state_dict: the state was saved with seed=" + std::to_string(state.seed) +
                        ", shuffle=" + (state.shuffle ? "True" : "False") + ", a window of " +
                        std::to_string(state.shard_window) + " shards; create the loader with the same values");
  if (state.dataset.blocks != now.blocks)
    return config_error("load_state_dict: the state was taken when shuffle=\"shards\" permuted " +
                        permuted(state.dataset) + "; now it permutes " + permuted(now) +
                        ", so positions refer to other samples; start the epoch again with set_epoch(" +
                        std::to_string(state.epoch) + "), or resume with the version of Feedline that saved the state");
  if (state.fidelity != fidelity)
    return config_error("load_state_dict: the state was saved with decode(" + argument_of(state.fidelity) +
                        "), but the dataset now has decode(" + argument_of(fidelity) +
                        "), which produces different pixels; open the dataset with the same decode()");
  if (state.repeat != plan.order.repeat)
    return config_error("load_state_dict: the state was saved with repeat=" + std::to_string(state.repeat) +
                        ", but the loader has repeat=" + std::to_string(plan.order.repeat) +
                        ", so positions refer to other samples; create the loader with the same repeat");
  return check_buckets(state, plan);
}

Result<pipeline::EpochStart> start_of(const LoaderState& state, const pipeline::PipelinePlan& plan) {
  FEEDLINE_CHECK_OK(check_place(state, plan));
  return pipeline::EpochStart{state.epoch, state.position, plan::tidied(state.delivered, state.position),
                              state.left_out};
}

}  // namespace feedline::consumer
