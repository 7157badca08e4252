// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "feedline/stored_source.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

void bind_hub(nb::module_& module) {
  module.def(
      "pin_hub", [](const std::string& url) { return unwrap(without_gil([&] { return pin_hub(url); })); }, "url"_a,
      "Returns an hf://datasets/ URL with the commit of its revision and, if the dataset was renamed, its new name. "
      "Raises ConfigError if the URL does not name a dataset, and StorageError if the Hub refuses.");
  module.def(
      "list_hub",
      [](const std::string& pinned) {
        nb::list entries;
        for (const HubEntry& entry : unwrap(without_gil([&] { return list_hub(pinned); })))
          entries.append(nb::make_tuple(entry.path, entry.bytes));
        return entries;
      },
      "pinned"_a, nb::sig("def list_hub(pinned: str) -> list[tuple[str, int]]"),
      "Returns (path in the repository, size in bytes) of all files below a result of pin_hub(), sorted by path. "
      "Raises "
      "StorageError.");
  module.def(
      "card_as_json", [](const std::string& yaml) { return unwrap(card_as_json(yaml)); }, "yaml"_a,
      "Converts YAML to JSON, with all scalars as strings except booleans and nulls. Raises DataError.");
}

}  // namespace feedline::python
