// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "feedline/plugin/loading.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

nb::tuple to_tuple(const PluginContents& plugin) {
  return nb::make_tuple(plugin.path, plugin.storages, plugin.formats, plugin.codecs, plugin.operations);
}

}  // namespace

void bind_plugins(nb::module_& module) {
  module.def(
      "load_plugin",
      [](const std::string& path) {
        auto plugin = [&] {
          const WithoutGil released;
          return load_plugin(path);
        }();
        return to_tuple(unwrap(std::move(plugin)));
      },
      "path"_a, nb::sig("def load_plugin(path: str) -> tuple[str, list[str], list[str], list[str], list[str]]"));
  module.def(
      "loaded_plugins",
      [] {
        nb::list all;
        for (const PluginContents& plugin : loaded_plugins()) all.append(to_tuple(plugin));
        return all;
      },
      nb::sig("def loaded_plugins() -> list[tuple[str, list[str], list[str], list[str], list[str]]]"));
}

}  // namespace feedline::python
