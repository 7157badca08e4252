// SPDX-License-Identifier: Apache-2.0
#include "feedline/loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "arrays.h"
#include "errors.h"
#include "feedline/dataset.h"
#include "gil.h"
#include "guarded_loader.h"
#include "subjects.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

std::unique_ptr<GuardedLoader> make_loader(
    const Dataset& dataset, std::uint64_t batch_size, bool shuffle, std::uint64_t shard_window, std::uint64_t seed,
    bool drop_last, int num_workers, std::uint64_t memory_budget, bool in_order, const std::string& on_error,
    std::uint64_t error_budget, std::uint64_t rank, std::uint64_t world_size, const std::string& uneven,
    const std::optional<std::string>& dtype, const std::string& layout, std::uint64_t timeout_ms, bool given_order,
    std::vector<std::uint64_t> bucket_bounds, std::uint64_t buckets, std::uint64_t max_tokens, int most_workers) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.shuffle = shuffle;
  options.shard_window = shard_window;
  options.seed = seed;
  options.drop_last = drop_last;
  options.num_workers = num_workers;
  options.most_workers = most_workers;
  options.memory_budget = memory_budget;
  options.in_order = in_order;
  options.on_error = on_error_of(on_error);
  options.error_budget = error_budget;
  options.rank = rank;
  options.world_size = world_size;
  options.uneven = uneven_of(uneven);
  if (dtype) options.dtype = dtype_of(*dtype);
  options.layout = layout_of(layout);
  options.timeout = std::chrono::milliseconds(timeout_ms);
  options.given_order = given_order;
  options.bucket_bounds = std::move(bucket_bounds);
  options.buckets = buckets;
  options.max_tokens = max_tokens;
  auto loader = [&] {
    const WithoutGil released;
    return dataset.loader(options);
  }();
  return std::make_unique<GuardedLoader>(unwrap(std::move(loader)));
}

nb::dict stage_dict(const StageStats& stage) {
  nb::dict result;
  result["items"] = stage.items;
  result["bytes"] = stage.bytes;
  result["busy_s"] = stage.busy_s;
  result["blocked_s"] = stage.blocked_s;
  result["starved_s"] = stage.starved_s;
  result["latency_us"] = stage.latency_us;
  return result;
}

nb::dict controller_dict(const ControllerStats& controller) {
  nb::list changes;
  for (const ControllerStats::Change& change : controller.changes) {
    nb::dict row;
    row["at_s"] = change.at_s;
    row["from"] = change.from;
    row["to"] = change.to;
    row["ahead_from"] = change.ahead_from;
    row["ahead_to"] = change.ahead_to;
    row["why"] = change.why;
    changes.append(row);
  }
  nb::dict result;
  result["threads"] = controller.threads;
  result["limit"] = controller.limit;
  result["batches_ahead"] = controller.batches_ahead;
  result["changed"] = controller.changed;
  result["changes"] = changes;
  return result;
}

nb::dict stats_dict(const LoaderStats& stats) {
  nb::dict result;
  result["threads"] = stats.threads;
  result["batches"] = stats.batches;
  result["samples"] = stats.samples;
  result["bad_samples"] = stats.bad_samples;
  result["wall_s"] = stats.wall_s;
  result["ready_batches"] = stats.ready_batches;
  result["held_bytes"] = stats.held_bytes;
  result["held_bytes_peak"] = stats.held_bytes_peak;
  result["budget_bytes"] = stats.budget_bytes;
  if (stats.cache) {
    nb::dict cache;
    cache["where"] = stats.cache->where;
    cache["samples"] = stats.cache->samples;
    cache["present"] = stats.cache->present;
    cache["bytes"] = stats.cache->bytes;
    cache["budget_bytes"] = stats.cache->budget_bytes;
    cache["full"] = stats.cache->full;
    result["cache"] = cache;
  } else {
    result["cache"] = nb::none();
  }
  if (stats.controller)
    result["controller"] = controller_dict(*stats.controller);
  else
    result["controller"] = nb::none();
  nb::dict stages;
  for (const StageStats& stage : stats.stages) stages[nb::cast(stage.name)] = stage_dict(stage);
  result["stages"] = stages;
  return result;
}

nb::list bad_samples(const std::vector<BadSample>& errors) {
  nb::list result;
  for (const BadSample& bad : errors) {
    nb::dict row;
    row["exception"] = to_exception(bad.error);
    row["code"] = name_of(bad.error.code);
    row["epoch"] = bad.epoch;
    row["batch"] = bad.batch;
    row["record"] = bad.sample;
    row["action"] = word_of(bad.action);
    result.append(row);
  }
  return result;
}

nb::dict state_dict(const LoaderState& state) {
  nb::dict dataset;
  dataset["format"] = state.dataset.format;
  dataset["samples"] = state.dataset.samples;
  dataset["shards"] = state.dataset.shards;
  dataset["fields"] = state.dataset.fields;
  nb::list delivered;
  for (const Positions& span : state.delivered) delivered.append(nb::make_tuple(span.begin, span.end));
  nb::dict result;
  result["fingerprint"] = state.dataset.fingerprint;
  result["dataset"] = dataset;
  result["seed"] = state.seed;
  result["shuffle"] = state.shuffle;
  result["shard_window"] = state.shard_window;
  result["epoch"] = state.epoch;
  result["position"] = state.position;
  result["delivered"] = delivered;
  result["left_out"] = state.left_out;
  nb::list buckets;
  for (const Bucket& bucket : state.buckets) buckets.append(nb::make_tuple(bucket.bound, bucket.rows));
  result["buckets"] = buckets;
  result["fidelity"] = std::string(name_of(state.fidelity));
  return result;
}

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

void restore(GuardedLoader& self, std::uint64_t fingerprint, std::string format, std::uint64_t samples,
             std::uint64_t shards, std::vector<std::string> fields, std::uint64_t seed, bool shuffle,
             std::uint64_t shard_window, std::uint64_t epoch, std::uint64_t position, const Pairs& delivered,
             std::uint64_t left_out, const Pairs& buckets, const std::string& fidelity) {
  LoaderState state{{fingerprint, std::move(format), samples, shards, std::move(fields)},
                    seed,
                    shuffle,
                    shard_window,
                    epoch,
                    position,
                    {},
                    left_out,
                    {},
                    fidelity_of(fidelity)};
  for (const auto& [begin, end] : delivered) state.delivered.push_back({begin, end});
  for (const auto& [bound, rows] : buckets) state.buckets.push_back({bound, rows});
  unwrap(self.restore(state));
}

// The arrays of the next batch, and the index of each row's sample; None: the epoch is over.
nb::object next_arrays(GuardedLoader& self, bool torch) {
  const auto batch = unwrap(self.next());
  if (!batch) return nb::none();
  const auto& samples = batch->samples();
  self.last_samples.assign(samples.begin(), samples.end());
  return arrays_of(*batch, torch ? Framework::kTorch : Framework::kNumpy);
}

void give(GuardedLoader& self, const std::vector<std::uint64_t>& indices, const std::vector<std::uint64_t>& draws) {
  if (indices.size() != draws.size()) raise_config("give: as many draws as indices were expected");
  std::vector<GivenSample> samples(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) samples[i] = {indices[i], draws[i]};
  unwrap(self.give(std::move(samples)));
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<GuardedLoader>(module, "Loader")
      .def_prop_ro("batches", &GuardedLoader::batches)
      .def_prop_ro("epoch", &GuardedLoader::epoch)
      .def(
          "start_epoch", [](GuardedLoader& self, bool prepare_next) { unwrap(self.start_epoch(prepare_next)); },
          "prepare_next"_a = true)
      .def_prop_ro("rows_per_rank", [](GuardedLoader& self) { return unwrap(self.rows_per_rank()); })
      .def("set_epoch", &GuardedLoader::set_epoch, "epoch"_a)
      .def("give", &give, "indices"_a, "draws"_a)
      .def("end_giving", [](GuardedLoader& self) { unwrap(self.end_giving()); })
      .def("next", [](GuardedLoader& self) { return unwrap(self.next()); })
      .def("next_arrays", &next_arrays, "torch"_a,
           nb::sig("def next_arrays(self, torch: bool) -> list[typing.Any] | None"))
      .def_prop_ro("last_samples", [](const GuardedLoader& self) { return self.last_samples; })
      .def_prop_ro("field_names", [](const GuardedLoader& self) { return field_names(self.schema()); })
      .def_prop_ro("has_errors", &GuardedLoader::has_errors)
      .def(
          "take_errors", [](GuardedLoader& self) { return bad_samples(unwrap(self.take_errors())); },
          nb::sig("def take_errors(self) -> list[dict[str, typing.Any]]"))
      .def(
          "errors", [](GuardedLoader& self) { return bad_samples(unwrap(self.errors())); },
          nb::sig("def errors(self) -> list[dict[str, typing.Any]]"))
      .def(
          "stats", [](GuardedLoader& self) { return stats_dict(unwrap(self.stats())); },
          nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def(
          "state", [](GuardedLoader& self) { return state_dict(unwrap(self.state())); },
          nb::sig("def state(self) -> dict[str, typing.Any]"))
      .def("restore", &restore, nb::kw_only(), "fingerprint"_a, "format"_a, "samples"_a, "shards"_a, "fields"_a,
           "seed"_a, "shuffle"_a, "shard_window"_a, "epoch"_a, "position"_a, "delivered"_a, "left_out"_a, "buckets"_a,
           "fidelity"_a)
      .def("explain", [](GuardedLoader& self) { return unwrap(self.explain()); })
      .def_prop_ro("changes", &GuardedLoader::changes)
      .def("leave_a_cpu", &GuardedLoader::leave_a_cpu)
      .def("close", &GuardedLoader::close);
  module.def("make_loader", &make_loader, "dataset"_a, nb::kw_only(), "batch_size"_a, "shuffle"_a, "shard_window"_a = 0,
             "seed"_a, "drop_last"_a, "num_workers"_a, "memory_budget"_a, "in_order"_a, "on_error"_a, "error_budget"_a,
             "rank"_a, "world_size"_a, "uneven"_a, "dtype"_a.none(), "layout"_a, "timeout_ms"_a,
             "given_order"_a = false, "bucket_bounds"_a = std::vector<std::uint64_t>(), "buckets"_a = 0,
             "max_tokens"_a = 0, "most_workers"_a = 0);
}

}  // namespace feedline::python
