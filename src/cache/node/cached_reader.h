// SPDX-License-Identifier: Apache-2.0
#pragma once

// An object of one version, read from its copy: glances and what cannot be kept are read where it is stored.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "cache/node/node_cache.h"
#include "cache/node/whole_object.h"
#include "storage/storage.h"

namespace feedline::cache {

// Of a reader, bytes before this one are read where they are stored as long as nothing else was asked for: the first
// block of a tar tells what a file is, and is no reason to fetch it.
inline constexpr std::uint64_t kGlanceBytes = 512;

// The bytes of a copy, which stays for as long as somebody reads them.
Result<std::shared_ptr<const storage::Reader>> open_copy(Kept kept, const std::string& name, storage::Access access);

// Thread-safe. What a copy is of, and where it is read without one.
class CachedReader final : public storage::Reader {
 public:
  struct Object {
    std::string path, identity;
    storage::Version version;
    storage::Access access;
  };
  // stored: nullptr: opened once it is needed. copy: nullptr: found or fetched with the first bytes.
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
  // The copy may go once those have read who do. With the next bytes it is found again, or fetched. Nothing happens
  // where somebody may hold on to it without a word: what was mapped, or whose descriptor was given away.
  void let_go() const;

 private:
  using Bytes = std::shared_ptr<const Reader>;
  Bytes copy() const;              // nullptr: there is none
  Result<Bytes> stored() const;    // the object itself
  Result<Bytes> readable() const;  // its copy, or where there can be none, itself

  const std::shared_ptr<const storage::Storage> storage_;
  const std::shared_ptr<NodeCache> cache_;
  const std::shared_ptr<PieceMemory> memory_;
  const Object object_;
  mutable std::mutex fetching_;  // held by whoever looks for the copy, or fetches it; never under mutex_
  mutable std::mutex mutex_;     // of what stands below
  mutable Bytes stored_, copy_;
  mutable bool is_read_ = false;          // not only glanced at
  mutable bool stays_ = false;            // see let_go()
  mutable std::uint64_t refused_at_ = 0;  // NodeCache::changes() when there was no room; 0: there was
};

}  // namespace feedline::cache
