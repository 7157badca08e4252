// SPDX-License-Identifier: Apache-2.0
#include "feedline/network.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "register.h"
#include "text_caster.h"

namespace nb = nanobind;

namespace feedline::python {

void bind_network(nb::module_& module) {
  nb::class_<NetworkHost>(module, "NetworkHost", "Statistics of this process's reads from one host.")
      .def_ro("name", &NetworkHost::name, "And port.")
      .def_ro("requests", &NetworkHost::requests)
      .def_ro("connections", &NetworkHost::connections, "That were made for them.")
      .def_ro("bytes", &NetworkHost::bytes, "Of bodies that are over.")
      .def_ro("latency_s", &NetworkHost::latency_s, "Of late, to the first byte of an answer; 0: not seen.")
      .def_ro("bytes_per_s", &NetworkHost::bytes_per_s, "Of late, of one answer behind that; 0: not seen.");
  module.def("network_hosts", &network_hosts, "The hosts that this process has sent requests to, by name.");
}

}  // namespace feedline::python
