// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "operations.h"
#include "text_caster.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using ErasingNoise = op::RandomErasing::Noise;

ErasingNoise noise_of(const std::string& mode) {
  if (mode == "pixel") return ErasingNoise::kValues;
  return mode == "rand" ? ErasingNoise::kColour : ErasingNoise::kNone;
}

}  // namespace

void bind_random_operations(nb::class_<Dataset>& cls) {
  cls.def(
         "gaussian_blur",
         [](const Dataset& self, const Fields& fields, const std::array<int, 2>& kernel_size, LowHigh sigma) {
           return appended(self, fields, op::GaussianBlur{kernel_size, range_of(sigma)});
         },
         "fields"_a, "kernel_size"_a, "sigma"_a)
      .def(
          "random_erasing",
          [](const Dataset& self, const Fields& fields, double p, LowHigh scale, LowHigh ratio,
             std::vector<float> value) {
            op::RandomErasing erasing{.p = p, .scale = range_of(scale), .ratio = range_of(ratio)};
            if (value.empty()) erasing.noise = ErasingNoise::kValues;  // "random"
            if (!value.empty()) erasing.value = std::move(value);
            return appended(self, fields, std::move(erasing));
          },
          "fields"_a, "p"_a, "scale"_a, "ratio"_a, "value"_a)
      .def(
          "timm_random_erasing",
          [](const Dataset& self, const Fields& fields, double p, LowHigh area, LowHigh aspect, const std::string& mode,
             const std::array<int, 2>& count) {
            return appended(self, fields,
                            op::RandomErasing{.p = p,
                                              .scale = range_of(area),
                                              .ratio = range_of(aspect),
                                              .noise = noise_of(mode),
                                              .count = count,
                                              .is_timms = true});
          },
          "fields"_a, "p"_a, "area"_a, "aspect"_a, "mode"_a, "count"_a)
      .def(
          "random_apply",
          [](const Dataset& self, const Fields& fields, const Dataset& chain, double p) {
            return appended(self, fields, op::RandomApply{chain.operations(), p});
          },
          "fields"_a, "chain"_a, "p"_a)
      .def(
          "random_choice",
          [](const Dataset& self, const Fields& fields, const std::vector<const Dataset*>& chains,
             std::vector<double> p) {
            op::RandomChoice choice{{}, std::move(p)};
            for (const Dataset* chain : chains) choice.chains.push_back(chain->operations());
            return appended(self, fields, std::move(choice));
          },
          "fields"_a, "chains"_a, "p"_a)
      .def(
          "random_order",
          [](const Dataset& self, const Fields& fields, const Dataset& chain) {
            return appended(self, fields, op::RandomOrder{chain.operations()});
          },
          "fields"_a, "chain"_a);
}

}  // namespace feedline::python
