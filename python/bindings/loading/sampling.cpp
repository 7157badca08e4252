// SPDX-License-Identifier: Apache-2.0
#include "feedline/sampling.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interop/errors.h"
#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using Shared = std::shared_ptr<const Sampling>;

Shared by_weight(const std::vector<double>& weights) {
  return unwrap(without_gil([&] { return Sampling::by_weight(weights); }));
}

Shared undersample(const std::vector<std::int64_t>& classes) {
  return unwrap(without_gil([&] { return Sampling::undersample(classes); }));
}

Shared in_order(std::vector<std::uint64_t> indices, std::uint64_t samples, std::optional<std::uint64_t> fingerprint) {
  return unwrap(without_gil([&] { return Sampling::in_order(std::move(indices), samples, fingerprint); }));
}

}  // namespace

void bind_sampling(nb::module_& module) {
  nb::class_<Sampling>(module, "Sampling")
      .def_static("by_weight", &by_weight, "weights"_a)
      .def_static("undersample", &undersample, "classes"_a)
      .def_static("in_order", &in_order, "indices"_a, "samples"_a, "fingerprint"_a = nb::none())
      .def_prop_ro("positions", &Sampling::positions)
      .def_prop_ro("fingerprint", &Sampling::fingerprint);
}

}  // namespace feedline::python
