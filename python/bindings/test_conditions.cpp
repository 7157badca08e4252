// SPDX-License-Identifier: Apache-2.0
#include "base/test_conditions.h"

#include "interop/described.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

using base::TestConditions;

template <>
inline constexpr auto kMembers<TestConditions> = std::tuple(
    Member{"read_latency", &TestConditions::read_latency}, Member{"read_ahead", &TestConditions::read_ahead},
    Member{"random_threads", &TestConditions::random_threads}, Member{"machine_root", &TestConditions::machine_root},
    Member{"upload_part_bytes", &TestConditions::upload_part_bytes},
    Member{"block_cache_bytes", &TestConditions::block_cache_bytes});

void bind_test_conditions(nb::module_& module) {
  module.def(
      "set_test_conditions",
      [](const nb::dict& conditions) { base::test_conditions() = options_of<TestConditions>(conditions, "force"); },
      "conditions"_a, nb::sig("def set_test_conditions(conditions: dict[str, typing.Any]) -> None"));
  module.def(
      "test_conditions", [] { return to_dict(base::test_conditions()); },
      nb::sig("def test_conditions() -> dict[str, typing.Any]"));
}

}  // namespace feedline::python
