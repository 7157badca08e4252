// SPDX-License-Identifier: Apache-2.0
#include "feedline/packing.h"

#include <nanobind/nanobind.h>

#include "feedline/dataset.h"
#include "interop/described.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

template <>
inline constexpr auto kMembers<PackOptions> =
    std::tuple(Member{"field", &PackOptions::field}, Member{"length", &PackOptions::length},
               Member{"method", &PackOptions::method}, Member{"long", &PackOptions::overlong},
               Member{"window", &PackOptions::window}, Member{"pad_to_multiple_of", &PackOptions::document_multiple},
               Member{"pad", &PackOptions::pad}, Member{"vocabulary", &PackOptions::vocabulary});

void bind_packing(nb::module_& module) {
  nb::class_<PackedDataset>(module, "PackedDataset").def_prop_ro("documents", &PackedDataset::documents);
  module.def(
      "pack_sequences",
      [](const Dataset& dataset, const nb::dict& arguments) {
        const auto options = options_of<PackOptions>(arguments, "pack_sequences");
        return unwrap(without_gil([&] { return dataset.pack_sequences(options); }));
      },
      "dataset"_a, "options"_a,
      nb::sig("def pack_sequences(dataset: Dataset, options: dict[str, typing.Any]) -> PackedDataset"));
}

}  // namespace feedline::python
