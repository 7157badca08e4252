// SPDX-License-Identifier: Apache-2.0
#include "feedline/node_cache.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

void bind_node_cache(nb::module_& module) {
  nb::class_<CachedObject>(module, "CachedObject", "A cached copy of a stored object.")
      .def_ro("copy", &CachedObject::copy, "Name of the cache entry.")
      .def_ro("name", &CachedObject::name, "Full name of the object; empty if the cache entry is damaged.")
      .def_ro("bytes", &CachedObject::bytes)
      .def_ro("used_ns", &CachedObject::used_ns, "Time at which the copy was last opened, in nanoseconds since 1970.")
      .def_ro("in_use", &CachedObject::in_use, "Whether a process currently has the copy open.");
  nb::class_<CacheContents>(module, "CacheContents", "The contents of a cache.")
      .def_ro("objects", &CacheContents::objects)
      .def_ro("disk_bytes", &CacheContents::disk_bytes, "Disk space used by the cache folder, in bytes.");
  nb::class_<CacheRemoval>(module, "CacheRemoval", "Result of removing copies from a cache.")
      .def_ro("objects", &CacheRemoval::objects)
      .def_ro("in_use", &CacheRemoval::in_use, "Number of copies that were not removed because they are being read.")
      .def_ro("disk_bytes", &CacheRemoval::disk_bytes,
              "Disk space used by the cache folder after the removal, in bytes.");
  module.def(
      "list_cache",
      [](const std::string& directory) { return unwrap(without_gil([&] { return list_cache(directory); })); },
      "directory"_a);
  module.def(
      "verify_copy",
      [](const std::string& directory, const std::string& copy) {
        return unwrap(without_gil([&] { return verify_copy(directory, copy); }));
      },
      "directory"_a, "copy"_a,
      "Checks a cached copy. Returns a description of the problem, or an empty string if the copy is valid.");
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
