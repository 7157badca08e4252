// SPDX-License-Identifier: Apache-2.0
// Storages read by a Python library: engine threads call it through feedline/data/storage/fsspec_storage.py, with the
// GIL, which they release while they wait.
#include "feedline/foreign_storage.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interop/arrays.h"
#include "interop/gil.h"
#include "interop/library_call.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

ForeignObject object_of_tuple(nb::handle found) {
  return {.path = nb::cast<std::string>(found[0]),
          .bytes = nb::cast<std::uint64_t>(found[1]),
          .tag = nb::cast<std::uint64_t>(found[2]),
          .is_folder = nb::cast<bool>(found[3])};
}

// Calls a method of the store.
template <typename Arguments, typename Take>
auto called(const std::shared_ptr<void>& store, const char* method, const Arguments& arguments, const Take& take) {
  return call_library([&] { return object_of(store).attr(method); }, arguments, take);
}

class PythonStorage final : public ForeignStorage {
 public:
  // store: a feedline.data.storage.fsspec_storage.Store, or an object with the same methods.
  explicit PythonStorage(nb::object store)
      : explained_(nb::cast<std::string>(store.attr("explain")())), store_(held_by_anyone(std::move(store))) {}

  std::string explain() const override { return explained_; }
  Result<ForeignObject> stat(const std::string& url) const override {
    return called(
        store_, "stat", [&] { return nb::make_tuple(url); }, object_of_tuple);
  }
  Result<std::size_t> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) const override {
    const auto arguments = [&] { return nb::make_tuple(url, offset, static_cast<std::uint64_t>(out.size())); };
    return called(store_, "read", arguments, [&](nb::handle made) {
      const HeldBytes held(made);
      const std::size_t got = std::min(held.bytes().size(), out.size());
      std::memcpy(out.data(), held.bytes().data(), got);
      return got;
    });
  }
  Result<std::vector<ForeignObject>> list(const std::string& url, bool all) const override {
    const auto arguments = [&] { return nb::make_tuple(url, all); };
    return called(store_, "list", arguments, [](nb::handle made) {
      std::vector<ForeignObject> objects;
      for (nb::handle found : made) objects.push_back(object_of_tuple(found));
      return objects;
    });
  }

 private:
  const std::string explained_;
  const std::shared_ptr<void> store_;
};

// find: returns a store, None, or a message with what is missing.
void find_stores_by(nb::object find) {
  const std::shared_ptr<void> held = held_by_anyone(std::move(find));
  set_foreign_storages([held](const std::string& scheme) -> Result<std::shared_ptr<const ForeignStorage>> {
    const TakingGil gil;
    if (!gil) return interpreter_exits();
    try {
      nb::object found = object_of(held)(scheme);
      if (found.is_none()) return nullptr;
      if (nb::isinstance<nb::str>(found)) return config_error(nb::cast<std::string>(found));
      return std::make_shared<PythonStorage>(std::move(found));
    } catch (nb::python_error& error) {
      return config_error(std::string("the Python library for this URL scheme failed: ") + error.what());
    }
  });
}

}  // namespace

void bind_foreign_storage(nb::module_& module) { module.def("find_stores_by", &find_stores_by, "find"_a); }

}  // namespace feedline::python
