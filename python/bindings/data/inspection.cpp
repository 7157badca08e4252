// SPDX-License-Identifier: Apache-2.0
#include "feedline/inspection.h"

#include <nanobind/stl/vector.h>

#include "data/open_options.h"
#include "feedline/dataset.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/message_text.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

nb::dict to_dict(const std::vector<InspectionCount>& counts) {
  nb::dict result;
  for (const InspectionCount& entry : counts) result[nb::cast(entry.name)] = entry.count;
  return result;
}

Inspection inspect_source(const std::string& source, const nb::dict& arguments) {
  const OpenOptions options = open_options_of(arguments);
  return unwrap(without_gil([&] { return inspect(source, options); }));
}

}  // namespace

void bind_inspection(nb::module_& module) {
  nb::class_<InspectionFinding>(module, "InspectionFinding", "Data that a reader would drop, merge or reject.")
      .def_ro("code", &InspectionFinding::code,
              "Stable identifier of the kind of finding, such as \"member_without_dot\".")
      .def_ro("severity", &InspectionFinding::severity, "One of \"error\", \"warning\" and \"note\".")
      .def_prop_ro(
          "shard", [](const InspectionFinding& finding) { return message_text(finding.shard); },
          nb::sig("def shard(self) -> str"))
      .def_prop_ro(
          "key", [](const InspectionFinding& finding) { return message_text(finding.key); },
          nb::sig("def key(self) -> str"))
      .def_prop_ro(
          "text", [](const InspectionFinding& finding) { return message_text(finding.text); },
          nb::sig("def text(self) -> str"), "A sentence that describes the problem and its remedy.")
      .def(
          "__repr__",
          [](const InspectionFinding& finding) {
            return message_text("<" + finding.severity + " " + finding.code + ": " + finding.text + ">");
          },
          nb::sig("def __repr__(self) -> str"));
  nb::class_<Inspection>(module, "Inspection", "A summary of a dataset's contents, collected without decoding samples.")
      .def_ro("format", &Inspection::format)
      .def_ro("samples", &Inspection::samples)
      .def_ro("shards", &Inspection::shards, "Number of tar files; 0 if the dataset is a folder.")
      .def_ro("bytes", &Inspection::bytes, "Total size in bytes of the fields that a reader reads.")
      .def_ro("smallest_bytes", &Inspection::smallest_bytes, "Encoded size of the smallest image, in bytes.")
      .def_ro("largest_bytes", &Inspection::largest_bytes, "Encoded size of the largest image, in bytes.")
      .def_ro("fields", &Inspection::fields)
      .def_prop_ro(
          "extensions", [](const Inspection& self) { return to_dict(self.extensions); },
          nb::sig("def extensions(self) -> dict[str, int]"),
          "Number of files or tar members per extension, including those that are not read.")
      .def_prop_ro(
          "classes", [](const Inspection& self) { return to_dict(self.classes); },
          nb::sig("def classes(self) -> dict[str, int]"),
          "Number of samples per class; empty if the classes are unknown.")
      .def_ro("findings", &Inspection::findings)
      .def("__repr__", [](const Inspection& self) {
        return "<Inspection " + self.format + ", " + std::to_string(self.samples) + " samples, " +
               std::to_string(self.findings.size()) + " findings>";
      });
  module.def("inspect", &inspect_source, "source"_a, "options"_a = nb::dict(),
             nb::sig("def inspect(source: str, options: dict[str, typing.Any] = {}) -> Inspection"));
}

}  // namespace feedline::python
