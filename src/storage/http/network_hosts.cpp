// SPDX-License-Identifier: Apache-2.0
#include "feedline/network.h"
#include "storage/http/client.h"

namespace feedline {

std::vector<NetworkHost> network_hosts() {
  std::vector<NetworkHost> hosts;
  const storage::Client* const client = storage::Client::made();
  if (client == nullptr) return hosts;
  for (const auto& [name, counts] : client->tally().counts_of_hosts()) {
    const storage::LinkSpeed speed = client->tally().speed(name);
    hosts.push_back({name, counts.requests, counts.connections, counts.bytes, speed.latency_s, speed.bytes_per_s});
  }
  return hosts;
}

}  // namespace feedline
