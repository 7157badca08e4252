// SPDX-License-Identifier: Apache-2.0
#include "feedline/network.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;

namespace feedline::python {

void bind_network(nb::module_& module) {
  nb::class_<NetworkHost>(module, "NetworkHost", "Statistics of this process's reads from one host.")
      .def_ro("name", &NetworkHost::name, "Host name and port.")
      .def_ro("requests", &NetworkHost::requests)
      .def_ro("connections", &NetworkHost::connections, "Number of connections opened for these requests.")
      .def_ro("bytes", &NetworkHost::bytes, "Total size of completed response bodies, in bytes.")
      .def_ro("latency_s", &NetworkHost::latency_s,
              "Recent time to the first byte of a response, in seconds; 0 if no response was measured.")
      .def_ro("bytes_per_s", &NetworkHost::bytes_per_s,
              "Recent throughput of one response after its first byte; 0 if no response was measured.");
  module.def("network_hosts", &network_hosts,
             "Returns the hosts that this process has sent requests to, ordered by name.");
}

}  // namespace feedline::python
