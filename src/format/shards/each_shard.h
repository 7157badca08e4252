// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/cpus.h"
#include "base/guarded.h"
#include "base/local_ranks.h"
#include "base/thread.h"
#include "feedline/error.h"

namespace feedline::format {

// Returns the number of threads for shards: one per processor, or more for remote shards, since their threads wait for
// round trips.
inline std::size_t shards_side_by_side(bool is_remote) {
  constexpr std::size_t kMostThreads = 16;  // more do not speed up a disk and overload a file server
  constexpr std::size_t kRemote = 32;
  return is_remote ? kRemote : std::min(kMostThreads, static_cast<std::size_t>(base::usable_cpus()));
}

// Returns the number of shards to scan concurrently. Each scan needs a buffer of up to 8 MiB, which is an efficient
// read size over a network. Scans use the same memory as a loader by default: an eighth of the memory available to the
// process, divided among the local ranks.
inline std::ptrdiff_t scans_at_once(std::uint64_t usable_bytes, int ranks) {
  constexpr std::uint64_t kShare = 8, kEach = std::uint64_t{8} << 20, kMost = 16;
  const std::uint64_t room = usable_bytes / kShare / static_cast<std::uint64_t>(ranks);
  return static_cast<std::ptrdiff_t>(std::clamp<std::uint64_t>(room / kEach, 1, kMost));
}
inline std::ptrdiff_t scans_at_once() { return scans_at_once(base::usable_memory_bytes(), base::local_ranks().count); }

// Calls `make` for 0 to count - 1, from several threads if there are several shards. Returns the values in order, or
// the error with the lowest index. An exception thrown by `make` counts as an error. `make` may be called from any
// thread. No new calls start after an error. `side_by_side` is the maximum number of concurrent calls.
template <typename Value, typename Make>
Result<std::vector<Value>> each_shard(std::size_t count, const Make& make,
                                      std::size_t side_by_side = shards_side_by_side(false)) {
  std::vector<std::optional<Result<Value>>> made(count);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::optional<Error> lost;  // why a thread ended before finishing its index; guarded by mutex
  const auto work = [&] {
    // indexes are handed out in order, so all those below a failed one have started and will have a result
    while (!failed.load(std::memory_order_relaxed)) {
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      made[i].emplace(base::guarded([&] { return make(i); }));
      if (!*made[i]) failed.store(true, std::memory_order_relaxed);
    }
  };
  const auto lose = [&](Error error) {
    const std::lock_guard lock(mutex);
    lost = std::move(error);
    failed.store(true, std::memory_order_relaxed);
  };
  {
    const std::size_t threads = std::min(count, side_by_side);
    std::vector<base::Thread> others;
    others.reserve(threads);
    for (std::size_t i = 1; i < threads; ++i) {
      auto thread = base::Thread::start("feedline-open", work, lose);
      if (!thread) break;  // continue with the threads already started
      others.push_back(std::move(*thread));
    }
    work();
  }  // joins the threads
  std::vector<Value> values;
  for (auto& result : made) {
    if (!result) break;  // only after an earlier error
    if (!*result) return std::unexpected(std::move(*result).error());
    values.push_back(std::move(**result));
  }
  if (lost) return std::unexpected(std::move(*lost));
  return values;
}

}  // namespace feedline::format
