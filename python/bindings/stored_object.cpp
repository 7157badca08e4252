// SPDX-License-Identifier: Apache-2.0
#include "feedline/stored_object.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "gil.h"
#include "register.h"
#include "text_caster.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

nb::list entries_of(const StoredPlace& place) {
  nb::list entries;
  for (const StoredEntry& entry : unwrap(without_gil([&] { return place.entries(); })))
    entries.append(nb::make_tuple(entry.name, entry.bytes, entry.etag, entry.is_folder));
  return entries;
}

}  // namespace

void bind_stored_object(nb::module_& module) {
  nb::class_<StoredPlace>(module, "StoredPlace", "A writable folder of objects, s3:// or gs://. Thread-safe.")
      .def(
          "__init__",
          [](StoredPlace* self, const std::string& url) {
            new (self) StoredPlace(unwrap(without_gil([&] { return StoredPlace::open(url); })));
          },
          "url"_a)
      .def_prop_ro("url", &StoredPlace::url, "The URL without a trailing slash.")
      .def("entries", &entries_of, nb::sig("def entries(self) -> list[tuple[str, int, str, bool]]"),
           "Returns name, bytes, ETag and whether it is a folder, for each entry. Raises StorageError.")
      .def(
          "put",
          [](const StoredPlace& self, const std::string& name, const nb::bytes& content) {
            const auto* const data = static_cast<const std::byte*>(content.data());
            return unwrap(without_gil([&] { return self.put(name, {data, content.size()}); }));
          },
          "name"_a, "content"_a, "Returns the ETag. Raises StorageError.")
      .def(
          "upload",
          [](const StoredPlace& self, const std::string& file, const std::string& name) {
            return unwrap(without_gil([&] { return self.upload(file, name); }));
          },
          "file"_a, "name"_a, "Uploads a local file, in parts if it is large. Returns the ETag. Raises StorageError.")
      .def("cancel", &StoredPlace::cancel, "Cancels calls in other threads, within seconds.")
      .def(
          "remove",
          [](const StoredPlace& self, const std::string& name) {
            unwrap(without_gil([&] { return self.remove(name); }));
          },
          "name"_a)
      .def(
          "abort_unfinished",
          [](const StoredPlace& self, const std::vector<std::string>& names) {
            return unwrap(without_gil([&] { return self.abort_unfinished(names); }));
          },
          "names"_a, "Aborts unfinished uploads to these names. Returns their number.");
}

}  // namespace feedline::python
