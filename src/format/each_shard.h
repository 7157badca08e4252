// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <expected>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpus.h"
#include "feedline/error.h"

namespace feedline::format {

// Calls `make` for 0 .. count - 1, from several threads where there are several shards, and gives the values in order;
// or the error of the lowest number that has one. `make` is called from any thread, and for no number after an error.
template <typename Value, typename Make>
Result<std::vector<Value>> each_shard(std::size_t count, const Make& make) {
  std::vector<std::optional<Result<Value>>> made(count);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    // numbers are handed out in order, so all below a failed one were begun and will be there
    while (!failed.load(std::memory_order_relaxed)) {
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      made[i].emplace(make(i));
      if (!*made[i]) failed.store(true, std::memory_order_relaxed);
    }
  };
  {
    constexpr std::size_t kMostThreads = 16;  // more do not help a disk, and flood a file server
    const std::size_t threads = std::min({count, kMostThreads, static_cast<std::size_t>(base::usable_cpus())});
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  std::vector<Value> values;
  for (auto& result : made) {
    if (!result) break;  // behind an error, which comes first
    if (!*result) return std::unexpected(std::move(*result).error());
    values.push_back(std::move(**result));
  }
  return values;
}

}  // namespace feedline::format
