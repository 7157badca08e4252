// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace feedline::observe {

// A budget for the cost of monitoring: a fixed amount plus a fraction of the elapsed time. Nanoseconds.
struct Allowance {
  std::uint64_t began_ns = 0;
  std::uint64_t free_ns = 0;
  std::uint64_t share = 1;  // 1/share of the time
  std::uint64_t spent_ns = 0;

  static constexpr std::uint64_t kLongestWaitNs = 60'000'000'000;

  // Returns the budget that is available now.
  std::uint64_t left_ns(std::uint64_t now_ns) const {
    const std::uint64_t allowed_ns = free_ns + (now_ns - began_ns) / share;
    return allowed_ns - std::min(allowed_ns, spent_ns);
  }

  // Returns the time after which the budget covers the cost so far, at most a minute.
  std::uint64_t owed_ns(std::uint64_t now_ns) const {
    const std::uint64_t allowed_ns = free_ns + (now_ns - began_ns) / share;
    const std::uint64_t over_ns = spent_ns - std::min(allowed_ns, spent_ns);
    return std::min(over_ns, kLongestWaitNs / share) * share;
  }
};

}  // namespace feedline::observe
