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
      .def_ro("connections", &NetworkHost::connections, "Connections opened for these requests.")
      .def_ro("bytes", &NetworkHost::bytes, "Bytes of completed response bodies.")
      .def_ro("latency_s", &NetworkHost::latency_s, "Recent time to the first byte of a response; 0 if there is none.")
      .def_ro("bytes_per_s", &NetworkHost::bytes_per_s,
              "Recent throughput of one response after its first byte; 0 if there is none.");
  module.def("network_hosts", &network_hosts, "The hosts that this process has sent requests to, by name.");
}

}  // namespace feedline::python
