// SPDX-License-Identifier: Apache-2.0
#pragma once

// Statistics of network reads so far, for benchmarks.

#include <cstdint>
#include <string>
#include <vector>

namespace feedline {

struct NetworkHost {
  std::string name;  // with its port
  std::uint64_t requests = 0, connections = 0;
  std::uint64_t bytes = 0;  // of completed bodies
  // Averages over recent requests, or 0 if there were none.
  double latency_s = 0;    // from sending a request to the first byte of its response
  double bytes_per_s = 0;  // of one response, after its first byte
};

// Returns the hosts that this process has sent requests to, sorted by name. Does not send requests or start threads.
// Thread-safe.
std::vector<NetworkHost> network_hosts();

}  // namespace feedline
