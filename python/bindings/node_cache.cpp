// SPDX-License-Identifier: Apache-2.0
#include "feedline/node_cache.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "gil.h"
#include "register.h"
#include "text_caster.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

void bind_node_cache(nb::module_& module) {
  nb::class_<CachedObject>(module, "CachedObject", "A copy of a stored object.")
      .def_ro("copy", &CachedObject::copy, "The entry's name in the cache.")
      .def_ro("name", &CachedObject::name, "The whole name of the object; empty if its entry is damaged.")
      .def_ro("bytes", &CachedObject::bytes)
      .def_ro("used_ns", &CachedObject::used_ns, "Time of the last open, in nanoseconds since 1970.")
      .def_ro("in_use", &CachedObject::in_use, "Whether a process has the copy open.");
  nb::class_<CacheContents>(module, "CacheContents", "The contents of a cache.")
      .def_ro("objects", &CacheContents::objects)
      .def_ro("disk_bytes", &CacheContents::disk_bytes, "Bytes used by the folder.");
  nb::class_<CacheRemoval>(module, "CacheRemoval", "The copies removed from a cache.")
      .def_ro("objects", &CacheRemoval::objects)
      .def_ro("in_use", &CacheRemoval::in_use, "Copies retained because they are being read.")
      .def_ro("disk_bytes", &CacheRemoval::disk_bytes, "Bytes used by the folder now.");
  module.def(
      "list_cache",
      [](const std::string& directory) { return unwrap(without_gil([&] { return list_cache(directory); })); },
      "directory"_a);
  module.def(
      "verify_copy",
      [](const std::string& directory, const std::string& copy) {
        return unwrap(without_gil([&] { return verify_copy(directory, copy); }));
      },
      "directory"_a, "copy"_a, "Returns the problem, or an empty string if there is none.");
  module.def(
      "prune_cache",
      [](const std::string& directory, std::uint64_t bytes) {
        return unwrap(without_gil([&] { return prune_cache(directory, bytes); }));
      },
      "directory"_a, "bytes"_a);
  module.def(
      "clear_cache",
      [](const std::string& directory) { return unwrap(without_gil([&] { return clear_cache(directory); })); },
      "directory"_a);
}

}  // namespace feedline::python
