// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a whole object into its copy: one piece after the other, and where each is a request over a network,
// some pieces at a time, so that their round trips overlap.

#include <memory>
#include <mutex>

#include "cache/node/node_cache.h"
#include "storage/fetch.h"
#include "storage/storage.h"

namespace feedline::cache {

// Ends a fetch from another thread. Thread-safe.
class Stop {
 public:
  void stop();
  bool is_stopped() const;

 private:
  friend class Waking;
  mutable std::mutex mutex_;
  bool is_stopped_ = false;
  storage::FetchQueue* waits_ = nullptr;  // woken by stop()
};

// Pieces of an object that are under way at a time, and their size.
inline constexpr std::size_t kPiecesAtOnce = 4;
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

// kStorage: the object cannot be read, or is not of this version any more. kCancelled: stop() was called. Otherwise
// output's error, where it takes no more. stop: nullptr: nobody ends it.
Result<void> fetch_whole(const std::shared_ptr<const storage::Storage>& storage,
                         const std::shared_ptr<const storage::Reader>& reader, const storage::Version& version,
                         NodeCache::Output& output, Stop* stop);

}  // namespace feedline::cache
