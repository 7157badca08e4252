// SPDX-License-Identifier: Apache-2.0
// Names are bytes, as file names can be any bytes; Python uses os.fsencode() and os.fsdecode().
#include "feedline/stored_source.h"

#include <nanobind/nanobind.h>

#include <algorithm>

#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

std::string name_in(const nb::bytes& name) { return {name.c_str(), name.size()}; }

nb::list names_of(const StoredSource& source) {
  nb::list names;
  for (const std::string& name : source.names()) names.append(nb::bytes(name.data(), name.size()));
  return names;
}

// Reads up to `most` bytes from `offset` directly into the object returned to Python.
nb::object read_bytes(const StoredObject& object, std::uint64_t offset, std::uint64_t most) {
  const std::uint64_t bytes = std::min(most, object.bytes() - std::min(offset, object.bytes()));
  const nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
  if (!made) nb::raise_python_error();
  auto* const data = reinterpret_cast<std::byte*>(PyBytes_AsString(made.ptr()));
  const std::size_t got = unwrap(without_gil([&] {
    return object.read(offset, {data, static_cast<std::size_t>(bytes)});
  }));
  return got == bytes ? made : nb::object(nb::bytes(data, got));
}

}  // namespace

void bind_stored_source(nb::module_& module) {
  nb::class_<StoredObject>(module, "StoredObject", "A stored object that any thread may read.")
      .def_prop_ro("size", &StoredObject::bytes, "Bytes.")
      .def_prop_ro("stamp", &StoredObject::stamp, "A number that changes whenever the object changes.")
      .def("read", &read_bytes, "offset"_a, "most"_a, nb::sig("def read(self, offset: int, most: int) -> bytes"),
           "Reads at most `most` bytes, starting at `offset`. Raises StorageError if reading fails.")
      .def(
          "check_unchanged",
          [](const StoredObject& self) { unwrap(without_gil([&] { return self.check_unchanged(); })); },
          "Raises StorageError if the object has changed since it was opened.");
  nb::class_<StoredSource>(module, "StoredSource", "The stored objects of a source. Object names are bytes.")
      .def(
          "__init__",
          [](StoredSource* self, const std::string& source) {
            new (self) StoredSource(unwrap(without_gil([&] { return StoredSource::open(source); })));
          },
          "source"_a)
      .def_prop_ro("names", &names_of, nb::sig("def names(self) -> list[bytes]"),
                   "The shards, or a single folder, in order. Secrets are removed from URLs.")
      .def(
          "shards", [](const StoredSource& self) { return unwrap(without_gil([&] { return self.shards(); })); },
          "Returns `names`, with each folder of tars written by `feedline pack` replaced by its shards. Raises "
          "ConfigError if packing did not finish, DataError if a manifest is damaged, and StorageError if it cannot be "
          "read.")
      .def_prop_ro("is_remote", &StoredSource::is_remote)
      .def(
          "is_folder",
          [](const StoredSource& self, const nb::bytes& name) {
            const std::string object = name_in(name);
            return unwrap(without_gil([&] { return self.is_folder(object); }));
          },
          "name"_a)
      .def(
          "object",
          [](const StoredSource& self, const nb::bytes& name) {
            const std::string object = name_in(name);
            return unwrap(without_gil([&] { return self.object(object); }));
          },
          "name"_a,
          "Opens one of `names`, or an object in one of the folders. Raises StorageError if it cannot be opened.");
}

}  // namespace feedline::python
