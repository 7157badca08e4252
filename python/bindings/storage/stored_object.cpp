// SPDX-License-Identifier: Apache-2.0
#include "feedline/stored_object.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "base/crc.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

nb::list entries_of(const ObjectFolder& location) {
  nb::list entries;
  for (const StoredEntry& entry : unwrap(without_gil([&] { return location.entries(); })))
    entries.append(nb::make_tuple(entry.name, entry.bytes, entry.etag, entry.is_folder));
  return entries;
}

}  // namespace

void bind_stored_object(nb::module_& module) {
  nb::class_<ObjectFolder>(module, "ObjectFolder",
                           "A writable folder of objects at an s3:// or gs:// URL. Thread-safe.")
      .def(
          "__init__",
          [](ObjectFolder* self, const std::string& url) {
            new (self) ObjectFolder(unwrap(without_gil([&] { return ObjectFolder::open(url); })));
          },
          "url"_a)
      .def_prop_ro("url", &ObjectFolder::url, "The URL without a trailing slash.")
      .def("entries", &entries_of, nb::sig("def entries(self) -> list[tuple[str, int, str, bool]]"),
           "Returns (name, size in bytes, ETag, whether it is a folder) for each entry. Raises StorageError.")
      .def(
          "put",
          [](const ObjectFolder& self, const std::string& name, const nb::bytes& content) {
            const auto* const data = static_cast<const std::byte*>(content.data());
            return unwrap(without_gil([&] { return self.put(name, {data, content.size()}); }));
          },
          "name"_a, "content"_a, "Stores an object and returns its ETag. Raises StorageError.")
      .def(
          "upload",
          [](const ObjectFolder& self, const std::string& file, const std::string& name) {
            return unwrap(without_gil([&] { return self.upload(file, name); }));
          },
          "file"_a, "name"_a, "Uploads a local file, in parts if it is large. Returns the ETag. Raises StorageError.")
      .def("cancel", &ObjectFolder::cancel, "Cancels calls in other threads, which return within seconds.")
      .def(
          "remove",
          [](const ObjectFolder& self, const std::string& name) {
            unwrap(without_gil([&] { return self.remove(name); }));
          },
          "name"_a)
      .def(
          "abort_unfinished",
          [](const ObjectFolder& self, const std::vector<std::string>& names) {
            return unwrap(without_gil([&] { return self.abort_unfinished(names); }));
          },
          "names"_a, "Aborts unfinished uploads to these names, and returns the number of aborted uploads.");
  module.def(
      "crc32c",
      [](const nb::bytes& content) {
        const auto* const data = static_cast<const std::byte*>(content.data());
        return static_cast<std::uint32_t>(base::crc(base::CrcKind::k32c, 0, {data, content.size()}));
      },
      "content"_a);
}

}  // namespace feedline::python
