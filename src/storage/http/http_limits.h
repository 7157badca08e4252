// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace feedline::storage {

// Limits for requests. The time without progress is limited, but not the total time: a transfer that progresses may
// take a long time.
struct HttpLimits {
  std::chrono::milliseconds connect{10'000};
  // The first byte must arrive within one interval; after that, each interval must transfer at least `least_bytes`.
  std::chrono::milliseconds stall{20'000};
  std::uint64_t least_bytes = 20'000;
  int tries = 6;  // consecutive attempts without a byte of the body
  int tries_in_all = 40;
  std::chrono::milliseconds first_pause{100};  // before the second attempt; doubled for each further one
  std::chrono::milliseconds longest_pause{10'000};
  std::chrono::milliseconds longest_retry_after{120'000};  // if a server demands a longer pause, it is an error
  std::size_t at_once_per_host = 64;
  std::size_t at_once = 256;
  std::chrono::milliseconds least_late{50};  // no request counts as late before this time
  std::uint64_t requests_per_s = 0;          // per host; 0: unlimited
};

// Returns the defaults, which FEEDLINE_HTTP_STALL_MS, FEEDLINE_HTTP_TRIES, FEEDLINE_HTTP_CONNECTIONS and
// FEEDLINE_HTTP_REQUESTS_PER_S override (the last two are per host). The environment is read once.
const HttpLimits& http_limits();

}  // namespace feedline::storage
