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
      [](const std::string& path, std::vector<std::string> formats, std::vector<std::string> operations) {
        const ReservedNames reserved{std::move(formats), std::move(operations)};
        auto plugin = [&] {
          const WithoutGil released;
          return load_plugin(path, reserved);
        }();
        return to_tuple(unwrap(std::move(plugin)));
      },
      "path"_a, "formats"_a = std::vector<std::string>(), "operations"_a = std::vector<std::string>(),
      nb::sig(
          "def load_plugin(path: str, formats: list[str] = [], operations: list[str] = []) -> tuple[str, list[str], "
          "list[str], list[str], list[str]]"));
  module.def(
      "loaded_plugins",
      [] {
        const auto plugins = [] {  // a plugin that is registering may need the GIL
          const WithoutGil released;
          return loaded_plugins();
        }();
        nb::list all;
        for (const PluginContents& plugin : plugins) all.append(to_tuple(plugin));
        return all;
      },
      nb::sig("def loaded_plugins() -> list[tuple[str, list[str], list[str], list[str], list[str]]]"));
  module.def(
      "reads_extension", [](const std::string& extension) { return reads_extension(extension); }, "extension"_a,
      nb::sig("def reads_extension(extension: str) -> bool"));
}

}  // namespace feedline::python
