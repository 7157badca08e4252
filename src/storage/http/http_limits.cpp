// SPDX-License-Identifier: Apache-2.0
#include "storage/http/http_limits.h"

#include <cstdlib>
#include <optional>

#include "storage/http/response_head.h"

namespace feedline::storage {
namespace {

std::optional<std::uint64_t> number_in(const char* variable) {
  constexpr std::uint64_t kMost = 100'000'000;
  const char* const text = std::getenv(variable);
  const auto number = text ? parse_size(text) : std::nullopt;
  return number && *number > 0 && *number <= kMost ? number : std::nullopt;
}

HttpLimits limits_here() {
  HttpLimits limits;
  if (const auto stall = number_in("FEEDLINE_HTTP_STALL_MS")) {
    limits.stall = std::chrono::milliseconds(*stall);
    limits.least_bytes = *stall;  // 1 KB/s, like the default
  }
  if (const auto tries = number_in("FEEDLINE_HTTP_TRIES")) limits.tries = static_cast<int>(*tries);
  if (const auto connections = number_in("FEEDLINE_HTTP_CONNECTIONS")) limits.at_once_per_host = *connections;
  if (const auto rate = number_in("FEEDLINE_HTTP_REQUESTS_PER_S")) limits.requests_per_s = *rate;
  return limits;
}

}  // namespace

const HttpLimits& http_limits() {
  static const HttpLimits limits = limits_here();
  return limits;
}

}  // namespace feedline::storage
