// SPDX-License-Identifier: Apache-2.0
#include "consumer/explanation.h"

#include <algorithm>

#include "consumer/pack_feed.h"
#include "pipeline/planning/block_reads.h"
#include "pipeline/sample/source.h"
#include "plan/buckets.h"

namespace feedline::consumer {
namespace {

using pipeline::PipelinePlan;

std::string rounded(std::uint64_t bytes) {
  return bytes < (1u << 20) ? std::to_string((bytes + (1u << 9)) >> 10) + " KiB"
                            : std::to_string((bytes + (1u << 19)) >> 20) + " MiB";
}

std::string order_of(const pipeline::Source& source, const PipelinePlan& plan) {
  std::string text = std::to_string(source.size()) + " samples, ";
  if (source.is_mixture()) text += "mixed, " + std::to_string(source.positions()) + " per epoch, ";
  const std::uint64_t blocks = source.block_ends().size();
  const auto sampling = plan.order.current ? plan.order.current->get().sampling : nullptr;
  if (sampling)
    text += sampling->explain();
  else if (!plan.order.shuffle)
    text += "sequential";
  else if (plan.order.shard_window > 0 && blocks > 1)
    text += std::to_string(blocks) + " " + std::string(source.block_name()) + " permuted, " +
            std::to_string(std::min(plan.order.shard_window, blocks)) + " of them at a time";
  else
    text += "keyed permutation";
  if (plan.order.repeat > 1)
    text += ", each sample " + std::to_string(plan.order.repeat) + " times, " +
            std::to_string((source.size() + plan.order.repeat - 1) / plan.order.repeat) + " samples per epoch";
  return plan.order.shuffle || sampling ? text + ", seed " + std::to_string(plan.order.seed) : text;
}

// Describes how an uneven number of samples is distributed over ranks and batches.
std::string shares_of(const PipelinePlan& plan, const plan::Plan& epoch) {
  const std::uint64_t size = epoch.order().size();
  const std::uint64_t most = epoch.batches(0), least = epoch.batches(plan.ranks.world_size - 1);
  std::uint64_t delivered = 0;
  for (std::uint64_t rank = 0; rank < plan.ranks.world_size; ++rank) delivered += epoch.samples(rank);
  std::string text = "over all ranks: " + std::to_string(std::min(delivered, size)) + " of " + std::to_string(size) +
                     (plan.order.repeat > 1 ? " positions" : " samples") + " per epoch";
  if (delivered < size) text += ", " + std::to_string(size - delivered) + " left out";
  if (delivered > size) text += ", " + std::to_string(delivered - size) + " of them twice";
  if (least < most)
    text += "; " + std::to_string(most) + " batches on the first ranks, " + std::to_string(least) +
            " on the last ones: use torch's Join, or the first will wait forever";
  return text;
}

std::string buckets_of(const PipelinePlan& plan) {
  std::string text;
  if (!plan.order.buckets) return text;
  const plan::Buckets& buckets = *plan.order.buckets;
  for (std::uint64_t b = 0; b < buckets.size(); ++b)
    text += "bucket     up to " + std::to_string(buckets[b].bound) + ": " + std::to_string(buckets.members(b).size()) +
            " samples, batches of " + std::to_string(buckets[b].rows / plan.ranks.world_size) + "\n";
  return text;
}

std::string samples_of(const pipeline::Source& source, const PipelinePlan& plan, const plan::Plan& epoch) {
  if (plan.is_given)
    return "plan       given by the caller, in batches of up to " + std::to_string(plan.ranks.batch_rows) + ", seed " +
           std::to_string(plan.order.seed) + "\n";
  return "plan       " + order_of(source, plan) + ", rank " + std::to_string(plan.ranks.rank) + " of " +
         std::to_string(plan.ranks.world_size) + ": " + std::to_string(epoch.batches()) + " batches of " +
         (plan.order.buckets ? "up to " : "") + std::to_string(plan.ranks.batch_rows) + "\n" + buckets_of(plan) +
         "           " + shares_of(plan, epoch) + "\n";
}

std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t hundredths = whole == 0 ? 0 : (10000 * part + whole / 2) / whole;
  const std::string digits = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (digits.size() < 2 ? "0" : "") + digits + " %";
}

// Counting takes about 30 ns for each document, so explain() takes at most 0.1 s for this many of them.
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 21;

// Describes packed sequences; the counts are those of epoch 0, or of its first windows if there are many documents.
std::string packs_of(const PackFeed& packs, const PipelinePlan& plan, const LoaderOptions& asked) {
  const PackOptions& options = packs.source().options();
  const std::uint64_t windows = std::max<std::uint64_t>(1, std::min(packs.windows(), kMostCounted / options.window));
  const PackCounts counts = packs.count(0, windows);
  std::string text = "plan       packed sequences: " + packs.source().describe() + ", " +
                     packs.source().describe_contents() + ", " +
                     (asked.shuffle ? "keyed permutation, seed " + std::to_string(asked.seed) : "sequential") +
                     ", rank " + std::to_string(plan.ranks.rank) + " of " + std::to_string(plan.ranks.world_size) +
                     ", batches of " + std::to_string(plan.ranks.batch_rows) + "\n";
  text += "packing    " + std::to_string(counts.documents) + " documents" +
          (windows < packs.windows()
               ? " of the first " + std::to_string(windows) + " windows of " + std::to_string(packs.windows())
               : " of epoch 0") +
          ": " + std::to_string(counts.packs) + " packs, fill " +
          percent_of(counts.tokens, counts.packs * options.length) + ", " +
          std::to_string(counts.packs == 0 ? 0 : (counts.pieces + counts.packs / 2) / counts.packs) +
          " documents per pack, " + std::to_string(counts.split) + " split, " + std::to_string(counts.truncated) +
          " truncated, " + std::to_string(counts.dropped) + " dropped, " + std::to_string(counts.empty) + " empty; " +
          std::to_string(counts.lost_tokens) + " tokens are not used\n";
  return text;
}

std::string source_of(const pipeline::Source& source, const pipeline::Recipe& recipe, const PipelinePlan& plan) {
  std::string text = "format     " + std::string(source.format_name()) + ", " + source.name() + "\n";
  if (const std::string summary = source.summary(); !summary.empty()) text += "           " + summary + "\n";
  for (const std::string& line : pipeline::explain_images(recipe)) text += "image      " + line + "\n";
  for (const std::string& line : pipeline::explain_map(recipe)) text += "map        " + line + "\n";
  if (const std::string mix = explain_mix(plan); !mix.empty()) text += "mix        " + mix + "\n";
  for (const FieldSpec& field : schema_of(recipe, plan))
    text += "field      " + field.name + ": " + std::string(name_of(field.array.dtype)) + " " +
            field.array.shape.to_string() + "\n";
  return text;
}

// on_error = kRaise is the default, so it is not described.
std::string errors_of(const PipelinePlan& plan) {
  if (plan.on_error == OnError::kRaise) return "";
  if (plan.on_error == OnError::kReport) return "errors     bad rows are reported, and the batch is delivered\n";
  std::string text = "errors     bad samples are ";
  if (plan.on_error == OnError::kSkip) text += "skipped, and the batch is refilled from the end of the order";
  if (plan.on_error == OnError::kReplace) text += "replaced";
  if (!plan.on_error_reason.empty()) text += ", not skipped: " + plan.on_error_reason;
  if (plan.error_budget > 0) text += "; at most " + std::to_string(plan.error_budget) + " per epoch";
  return text + "\n";
}

// Describes how long the Python function has taken so far.
std::string calls_of(const LoaderStats& stats) {
  if (!stats.map || stats.map->calls == 0) return "";
  const auto each_us = [&](double seconds) {
    return std::to_string(static_cast<std::uint64_t>(seconds * 1e6 / static_cast<double>(stats.map->calls)));
  };
  double all_s = stats.map->run_s + stats.map->waited_s;
  for (const StageStats& stage : stats.stages)
    if (stage.name == "storage" || stage.name == "decode" || stage.name == "transform") all_s += stage.busy_s;
  all_s -= stats.map->run_s;  // included in transform
  const auto percent = static_cast<int>(100 * (stats.map->run_s + stats.map->waited_s) / std::max(all_s, 1e-9));
  return "           " + std::to_string(stats.map->calls) + " calls so far, " + each_us(stats.map->run_s) +
         " us each, after " + each_us(stats.map->waited_s) +
         " us waiting for the GIL or a process: " + std::to_string(percent) + " % of the threads' work\n";
}

std::string threads_of(const pipeline::Pipeline& pipeline) {
  const std::string all = std::to_string(pipeline.plan().threads);
  const auto controller = pipeline.stats().controller;
  if (!controller) return all + " native, one sample at a time";
  std::string text = all + " native, one sample at a time; the number adapts to the training loop: " +
                     std::to_string(controller->threads) + " now, at most " + std::to_string(controller->limit) + ", ";
  if (controller->changed == 0) return text + "no changes so far";
  return text + "changed " + std::to_string(controller->changed) + " times, last \"" + controller->changes.back().why +
         "\"";
}

std::string memory_of(const PipelinePlan& plan) {
  return std::to_string(plan.slots) + " batches of " + rounded(plan.batch_bytes) + " ahead" +
         (plan.most_slots > plan.slots ? ", " + std::to_string(plan.most_slots) + " if the loop consumes in bursts"
                                       : "") +
         "; budget " + rounded(plan.memory_budget) + " (" + plan.budget_reason + ")" +
         (plan.copy_bytes > 0 ? ", of which " + rounded(plan.copy_bytes) + " is for shards in transfer to the cache"
                              : "");
}

std::string delivery_of(const PipelinePlan& plan, const LoaderOptions& asked) {
  if (!plan.in_order) return "as batches complete";
  return asked.in_order ? "in order" : "in order, because there are several ranks";
}

}  // namespace

std::string costly_reads(const pipeline::Recipe& recipe, const pipeline::Pipeline& pipeline, const PackFeed* packs) {
  const PipelinePlan& plan = pipeline.plan();
  if (packs) return pipeline::costly_block_reads(packs->source().sequences(), plan.order);
  // the caller's order is unknown, and cached samples are read once
  if (plan.is_given || pipeline::cache_stats(recipe)) return {};
  return pipeline::costly_block_reads(pipeline::source_of(recipe), plan.order);
}

std::string explain(const pipeline::Recipe& recipe, const pipeline::Pipeline& pipeline, const plan::Plan& epoch,
                    const LoaderOptions& asked, const PackFeed* packs) {
  const PipelinePlan& plan = pipeline.plan();
  const pipeline::Source source = packs ? packs->source().sequences() : pipeline::source_of(recipe);
  std::string text = packs ? packs_of(*packs, plan, asked) : samples_of(source, plan, epoch);
  text += source_of(source, recipe, plan) + errors_of(plan);
  if (const std::string costly = costly_reads(recipe, pipeline, packs); !costly.empty())
    text += "blocks     " + costly + "\n";
  text += calls_of(pipeline.stats());
  text += "threads    " + threads_of(pipeline) + "\n";
  if (const std::string reads = pipeline.explain_reads(); !reads.empty()) text += "reads      " + reads + "\n";
  text += "memory     " + memory_of(plan) + "\n";
  if (const std::string late = pipeline.explain_variable_size(); !late.empty()) text += "           " + late + "\n";
  text += "delivery   " + pipeline.explain_device() + ", " + delivery_of(plan, asked) + "\n";
  return text;
}

}  // namespace feedline::consumer
