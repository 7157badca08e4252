// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace feedline::observe {

// What watching may cost: so much whatever the time, and a share of the time that has passed. Nanoseconds.
struct Allowance {
  std::uint64_t began_ns = 0;
  std::uint64_t free_ns = 0;
  std::uint64_t share = 1;  // 1/share of the time
  std::uint64_t spent_ns = 0;

  static constexpr std::uint64_t kLongestWaitNs = 60'000'000'000;

  // What may be spent now.
  std::uint64_t left_ns(std::uint64_t now_ns) const {
    const std::uint64_t allowed_ns = free_ns + (now_ns - began_ns) / share;
    return allowed_ns - std::min(allowed_ns, spent_ns);
  }

  // How long to wait until what was spent is allowed: a minute at most.
  std::uint64_t owed_ns(std::uint64_t now_ns) const {
    const std::uint64_t allowed_ns = free_ns + (now_ns - began_ns) / share;
    const std::uint64_t over_ns = spent_ns - std::min(allowed_ns, spent_ns);
    return std::min(over_ns, kLongestWaitNs / share) * share;
  }
};

}  // namespace feedline::observe
