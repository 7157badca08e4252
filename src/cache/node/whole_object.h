// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a whole object into its copy: one piece after the other, and where each is a request over a network,
// some pieces at a time, so that their round trips overlap.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/node/node_cache.h"
#include "cache/node/piece_memory.h"
#include "cache/node/stop.h"
#include "storage/storage.h"

namespace feedline::cache {

// An object to be copied, the memory that it comes through, and where it is read: called where there is no copy yet.
struct Whole {
  const std::shared_ptr<const storage::Storage>& storage;
  const std::string& path;
  const storage::Version& version;
  PieceMemory& memory;
  std::function<Result<std::shared_ptr<const storage::Reader>>()> stored;
};

// As NodeCache::keep(). Bytes that are not those that somebody vouches for are fetched once more: they may have been
// damaged under way. Errors: kStorage: the object cannot be read, is not of this version any more, or has other bytes.
// kCancelled: stop() was called. stop: nullptr: nobody ends it.
Result<std::optional<Kept>> keep_whole(NodeCache& cache, const Whole& whole, NodeCache::Busy busy, Stop* stop);

}  // namespace feedline::cache
