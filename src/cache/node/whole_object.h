// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies a whole object piece by piece. If each piece is a network request, several are in flight, so that their round
// trips overlap.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/node/node_cache.h"
#include "cache/node/piece_memory.h"
#include "cache/node/stop.h"
#include "storage/storage.h"

namespace feedline::cache {

// An object to copy, the memory for its pieces, and a function that opens the original if there is no copy yet.
struct Whole {
  const std::shared_ptr<const storage::Storage>& storage;
  const std::string& path;
  const storage::Version& version;
  PieceMemory& memory;
  std::function<Result<std::shared_ptr<const storage::Reader>>()> stored;
};

// As NodeCache::keep(). Bytes that do not match the expected checksum are fetched once more, because they may have been
// damaged in transit. Errors: kStorage if the object cannot be read, has changed, or has different bytes; kCancelled if
// stop() was called. stop: nullptr if the copy cannot be cancelled.
Result<std::optional<HeldCopy>> copy_whole(NodeCache& cache, const Whole& whole, NodeCache::Busy busy, Stop* stop);

}  // namespace feedline::cache
