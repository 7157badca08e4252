// SPDX-License-Identifier: Apache-2.0
// Credentials read by a Python library: engine threads call feedline/data/storage/credentials.py, with the GIL, which
// it releases while it waits for a service.
#include "feedline/credentials.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "interop/gil.h"
#include "interop/library_call.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

Result<Credentials> credentials_of(nb::handle found) {
  if (found.is_none()) return Credentials{};
  if (nb::isinstance<nb::str>(found)) return config_error(nb::cast<std::string>(found));
  return Credentials{.id = nb::cast<std::string>(found[0]),
                     .secret = nb::cast<std::string>(found[1]),
                     .token = nb::cast<std::string>(found[2]),
                     .bearer = nb::cast<std::string>(found[3]),
                     .expires = nb::cast<std::int64_t>(found[4])};
}

// find: returns a tuple as below, None, or a message with what is missing.
void find_by(nb::object find) {
  const std::shared_ptr<void> held = held_by_anyone(std::move(find));
  find_credentials_by([held](const std::string& scheme) -> Result<Credentials> {
    FEEDLINE_TRY(auto found, call_library([&] { return nb::borrow(object_of(held)); },
                                          [&] { return nb::make_tuple(scheme); }, credentials_of,
                                          false));  // datasets that read with credentials join threads under the GIL
    return found;
  });
}

}  // namespace

void bind_credentials(nb::module_& module) {
  module.def("find_credentials_by", &find_by, "find"_a,
             "Sets a function find(scheme) that returns (id, secret, token, bearer, expires), None, or a text that "
             "states which credentials are missing. Any thread may call the function.");
}

}  // namespace feedline::python
