// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads one version of an object from its cached copy; short probes and uncacheable objects are read from the original
// storage.

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/fork_mutex.h"
#include "cache/node/node_cache.h"
#include "cache/node/whole_object.h"
#include "storage/storage.h"

namespace feedline::cache {

// Reads below this offset use the original storage until a reader requests more: detecting the format from the first
// block of a tar file must not fetch the whole object.
inline constexpr std::uint64_t kHeaderBytes = 512;

// Opens a copy for reading; the copy is not evicted while the reader exists.
Result<std::shared_ptr<const storage::Reader>> open_copy(HeldCopy held, const std::string& name,
                                                         storage::Access access);

// Thread-safe. Reads an object from its copy or from the original storage.
class CachedReader final : public storage::Reader {
 public:
  struct Object {
    std::string path, identity;
    storage::Version version;
    storage::Access access;
  };
  // stored: a reader for the original, or nullptr to open one when needed. copy: a reader for the copy, or nullptr to
  // find or fetch the copy on the first read.
  CachedReader(std::shared_ptr<const storage::Storage> storage, std::shared_ptr<NodeCache> cache,
               std::shared_ptr<PieceMemory> memory, Object object, std::shared_ptr<const Reader> stored,
               std::shared_ptr<const Reader> copy);

  Result<storage::ObjectStat> stat() const override;
  Result<storage::ObjectStat> version() const override;
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t count) const override;
  std::size_t worthwhile_bytes() const override;
  int descriptor() const override;
  const std::string& name() const override { return object_.path; }

  const std::string& identity() const { return object_.identity; }
  // Allows the copy to be removed after current reads finish; the next read finds or fetches it again. Has no effect if
  // the copy may still be in use in a way that cannot be tracked: if it was mapped, or its descriptor was handed out.
  void let_go() const;

 private:
  using Bytes = std::shared_ptr<const Reader>;
  Bytes copy() const;              // nullptr if there is none
  Result<Bytes> stored() const;    // the object itself
  Result<Bytes> readable() const;  // its copy, or the object itself if there cannot be one

  const std::shared_ptr<const storage::Storage> storage_;
  const std::shared_ptr<NodeCache> cache_;
  const std::shared_ptr<PieceMemory> memory_;
  const Object object_;
  mutable ForkMutex fetching_;  // held while finding or fetching the copy; never locked under mutex_
  mutable ForkMutex mutex_;     // guards the members below
  mutable Bytes stored_, copy_;
  mutable bool is_read_ = false;          // read, not only probed
  mutable bool stays_ = false;            // see let_go()
  mutable std::uint64_t refused_at_ = 0;  // NodeCache::changes() when there was no room; 0 if there was
};

}  // namespace feedline::cache
