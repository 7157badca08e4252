// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "arrays.h"
#include "errors.h"
#include "feedline/loader.h"
#include "subjects.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

nb::list arrays_of(const Batch& batch, Framework framework) {
  nb::list arrays;
  for (const BatchField& field : batch.fields()) arrays.append(to_array(field.array, batch.memory(), framework));
  return arrays;
}

void bind_batch(nb::module_& module) {
  nb::class_<Batch>(module, "Batch")
      .def_prop_ro("names",
                   [](const Batch& self) {
                     std::vector<std::string> names;
                     for (const BatchField& field : self.fields()) names.emplace_back(field.name);
                     return names;
                   })
      .def_prop_ro("index", &Batch::index)
      .def_prop_ro(
          "samples",
          [](const Batch& self) { return std::vector<std::uint64_t>(self.samples().begin(), self.samples().end()); })
      .def("__len__", &Batch::rows)
      .def_prop_ro(
          "bad",
          [](const Batch& self) {
            nb::list rows;
            for (const BadRow& bad : self.bad()) rows.append(nb::make_tuple(bad.row, to_exception(bad.error)));
            return rows;
          },
          nb::sig("def bad(self) -> list[tuple[int, Exception]]"))
      .def(
          "to_numpy", [](const Batch& self) { return arrays_of(self, Framework::kNumpy); },
          nb::sig("def to_numpy(self) -> list[numpy.typing.NDArray[typing.Any]]"))
      .def(
          "to_torch", [](const Batch& self) { return arrays_of(self, Framework::kTorch); },
          nb::sig("def to_torch(self) -> list[typing.Any]"));
}

}  // namespace feedline::python
