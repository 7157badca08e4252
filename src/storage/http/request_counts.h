// SPDX-License-Identifier: Apache-2.0
#pragma once

// Request statistics and latencies of a client, by host ("name:port").

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "storage/http/host_pace.h"

namespace feedline::storage {

struct RequestCounts {
  std::uint64_t requests = 0, connections = 0, bytes = 0;
  std::uint64_t hedges = 0;     // hedged requests, included above
  std::uint64_t held_back = 0;  // requests delayed by the rate limit
};

// Any thread.
class RequestTally {
 public:
  void request(const std::string& host);
  void hedge(const std::string& host);  // also counts as a request
  void held_back();
  void connected(const std::string& host, std::uint64_t connections);
  void received(const std::string& host, std::uint64_t bytes);  // by a transfer; host is empty if it never reached one
  // Counts a response with data: the seconds until its first byte, its bytes, and the seconds of their transfer.
  void answered(const std::string& host, double latency_s, std::uint64_t bytes, double seconds);

  RequestCounts counts() const;
  std::map<std::string, RequestCounts> counts_of_hosts() const;  // excludes hedges, held_back, and requests without a
                                                                 // host
  LinkSpeed speed(const std::string& host) const;                // nullopt: no request yet

 private:
  mutable std::mutex mutex_;
  // guarded by mutex_
  RequestCounts all_;
  std::map<std::string, RequestCounts> hosts_;
  std::map<std::string, SpeedEstimate> speeds_;
};

}  // namespace feedline::storage
