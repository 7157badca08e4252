// SPDX-License-Identifier: Apache-2.0
#include "storage/http/request_counts.h"

namespace feedline::storage {

void RequestTally::request(const std::string& host) {
  const std::lock_guard lock(mutex_);
  ++all_.requests;
  ++hosts_[host].requests;
}

void RequestTally::hedge(const std::string& host) {
  const std::lock_guard lock(mutex_);
  ++all_.requests;
  ++hosts_[host].requests;
  ++all_.hedges;
}

void RequestTally::held_back() {
  const std::lock_guard lock(mutex_);
  ++all_.held_back;
}

void RequestTally::connected(const std::string& host, std::uint64_t connections) {
  const std::lock_guard lock(mutex_);
  all_.connections += connections;
  hosts_[host].connections += connections;
}

void RequestTally::received(const std::string& host, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  all_.bytes += bytes;
  if (!host.empty()) hosts_[host].bytes += bytes;
}

void RequestTally::answered(const std::string& host, double latency_s, std::uint64_t bytes, double seconds) {
  const std::lock_guard lock(mutex_);
  speeds_[host].add(latency_s, bytes, seconds);
}

RequestCounts RequestTally::counts() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

std::map<std::string, RequestCounts> RequestTally::counts_of_hosts() const {
  const std::lock_guard lock(mutex_);
  return hosts_;
}

LinkSpeed RequestTally::speed(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  const auto found = speeds_.find(host);
  return found == speeds_.end() ? LinkSpeed{} : found->second.speed();
}

}  // namespace feedline::storage
