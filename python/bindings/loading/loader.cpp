// SPDX-License-Identifier: Apache-2.0
#include "feedline/loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <utility>

#include "feedline/dataset.h"
#include "interop/arrays.h"
#include "interop/described.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "loading/guarded_loader.h"
#include "loading/loader_facts.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

template <>
inline constexpr auto kMembers<LoaderOptions> = std::tuple_cat(std::tuple()
#define OPTION(type, name, value) , std::tuple(Member{#name, &LoaderOptions::name})
#include "feedline/loader_options.def"
#undef OPTION
);

namespace {

std::unique_ptr<GuardedLoader> make_loader(const Dataset& dataset, const nb::dict& arguments) {
  const auto options = options_of<LoaderOptions>(arguments, "loader");
  return std::make_unique<GuardedLoader>(unwrap(without_gil([&] { return dataset.loader(options); })));
}

// The caller fills bad rows, since only the caller knows how its own dataset handles them.
std::unique_ptr<GuardedLoader> make_given_loader(const Dataset& dataset, const nb::dict& arguments) {
  auto options = options_of<LoaderOptions>(arguments, "loader");
  options.on_error = OnError::kReport;
  return std::make_unique<GuardedLoader>(unwrap(without_gil([&] { return dataset.given_loader(options); })));
}

// Returns the arrays of the next batch of a run; None at its end.
nb::object next_arrays(GuardedLoader& self, std::uint64_t run, bool torch, bool dlpack) {
  const auto batch = unwrap(self.next(run));
  if (!batch) return nb::none();
  const auto& samples = batch->samples();
  self.last_samples.assign(samples.begin(), samples.end());
  return arrays_of(*batch, dlpack ? Framework::kDlpack : torch ? Framework::kTorch : Framework::kNumpy);
}

std::unique_ptr<GuardedLoader> make_packed_loader(const PackedDataset& dataset, const nb::dict& arguments,
                                                  const EnumArgument<PackLabels>& labels) {
  const auto options = options_of<LoaderOptions>(arguments, "loader");
  const PackLabels chosen = labels.checked("pack_sequences: labels");
  return std::make_unique<GuardedLoader>(unwrap(without_gil([&] { return dataset.loader(options, chosen); })));
}

// Like next_arrays(), followed by the number of segments of the batch, the tokens of the longest one, and the documents
// of all pieces.
nb::object next_packed(GuardedLoader& self, std::uint64_t run, bool torch) {
  const auto batch = unwrap(self.next(run));
  if (!batch) return nb::none();
  const auto segments = unwrap(self.segments(*batch)).value_or(PackSegments());
  const auto& samples = batch->samples();
  self.last_samples.assign(samples.begin(), samples.end());
  return nb::make_tuple(arrays_of(*batch, torch ? Framework::kTorch : Framework::kNumpy), segments.count,
                        segments.longest, segments.documents);
}

void give(GuardedLoader& self, const std::vector<std::uint64_t>& indices, const std::vector<std::uint64_t>& draws) {
  if (indices.size() != draws.size()) raise_config("give: the number of draws must equal the number of indices");
  std::vector<GivenSample> samples(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) samples[i] = {indices[i], draws[i]};
  unwrap(self.give(std::move(samples)));
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<GuardedLoader>(module, "Loader")
      .def_prop_ro("batches", [](GuardedLoader& self) { return self.batches(); })
      .def_prop_ro("epoch", &GuardedLoader::epoch)
      .def_prop_ro("next_epoch", &GuardedLoader::next_epoch)
      .def(
          "start_epoch",
          [](GuardedLoader& self, bool prepare_next, bool feeds_gpu) {
            return unwrap(self.start_epoch({.prepare_next = prepare_next, .feeds_gpu = feeds_gpu}));
          },
          "prepare_next"_a = true, "feeds_gpu"_a = false)
      .def_prop_ro("run", &GuardedLoader::run)
      .def_prop_ro("rows_per_rank", [](GuardedLoader& self) { return unwrap(self.rows_per_rank()); })
      .def("set_epoch", &GuardedLoader::set_epoch, "epoch"_a)
      .def(
          "set_sampling",
          [](GuardedLoader& self, std::shared_ptr<const Sampling> sampling) {
            unwrap(self.set_sampling(std::move(sampling)));
          },
          "sampling"_a)
      .def(
          "set_mix_weights",
          [](GuardedLoader& self, const std::vector<double>& weights) { unwrap(self.set_mix_weights(weights)); },
          "weights"_a)
      .def("give", &give, "indices"_a, "draws"_a)
      .def("end_giving", [](GuardedLoader& self) { unwrap(self.end_giving()); })
      .def(
          "next", [](GuardedLoader& self, std::optional<std::uint64_t> run) { return unwrap(self.next(run)); },
          "run"_a = nb::none())
      .def("next_arrays", &next_arrays, "run"_a, "torch"_a, "dlpack"_a = false,
           nb::sig("def next_arrays(self, run: int, torch: bool, dlpack: bool = False) -> list[typing.Any] | None"))
      .def("next_packed", &next_packed, "run"_a, "torch"_a,
           nb::sig("def next_packed(self, run: int, torch: bool) -> "
                   "tuple[list[typing.Any], int, int, list[int]] | None"))
      .def(
          "batches_in", [](GuardedLoader& self, std::uint64_t epoch) { return unwrap(self.batches_in(epoch)); },
          "epoch"_a)
      .def(
          "pack_counts",
          [](GuardedLoader& self, std::uint64_t epoch, std::optional<std::uint64_t> windows) {
            return pack_counts_dict(unwrap(self.pack_counts(epoch, windows)));
          },
          "epoch"_a, "windows"_a = nb::none(),
          nb::sig("def pack_counts(self, epoch: int, windows: int | None = None) -> dict[str, int]"))
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
      .def(
          "restore", [](GuardedLoader& self, const nb::dict& state) { unwrap(self.restore(state_of(state))); },
          "state"_a, nb::sig("def restore(self, state: dict[str, typing.Any]) -> None"),
          "Restores a state that `state()` returned.")
      .def("warning", [](GuardedLoader& self) { return unwrap(without_gil([&] { return self.warning(); })); })
      .def("explain", [](GuardedLoader& self) { return unwrap(self.explain()); })
      .def_prop_ro("changes", &GuardedLoader::changes)
      .def("close", &GuardedLoader::close);
  module.def("make_loader", &make_loader, "dataset"_a, "options"_a,
             nb::sig("def make_loader(dataset: Dataset, options: dict[str, typing.Any]) -> Loader"));
  module.def(
      "make_packed_loader", &make_packed_loader, "dataset"_a, "options"_a, "labels"_a,
      nb::sig("def make_packed_loader(dataset: PackedDataset, options: dict[str, typing.Any], labels: str) -> Loader"));
  module.def("make_given_loader", &make_given_loader, "dataset"_a, "options"_a,
             nb::sig("def make_given_loader(dataset: Dataset, options: dict[str, typing.Any]) -> Loader"));
  module.def(
      "loader_options", [] { return to_dict(LoaderOptions()); },
      nb::sig("def loader_options() -> dict[str, typing.Any]"),
      "Returns the options of loaders with their default values.");
}

}  // namespace feedline::python
