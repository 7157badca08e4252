// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the metadata of a shard when it is opened. Needs only a few requests to remote storage, and none if the bytes
// are cached.
//
//   read_at() ──► cached parts (shard_parts.h) ──► bytes already fetched ──► a request for somewhat more than the
//                                                                            given range: see kTail, kNear
//   bring()   ──► many concurrent requests
//
// keep() caches the bytes read and the format's note, so that opening the same fields again needs no requests. Reads
// from local files have exactly the requested size, and are cached only if there are many of them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "format/index/shard_parts.h"
#include "storage/reader.h"
#include "storage/storage.h"

namespace feedline::format {

struct ByteRange {
  std::uint64_t offset = 0, bytes = 0;
};

// Returns whether the first read of a shard copies the whole shard to a cache.
bool copies_whole(const storage::Storage& storage);
// Returns a reader for opening a shard. The reader bypasses the cache of whole shards, unless this shard is already
// cached. If `version` is nullopt, reads the current version.
Result<std::shared_ptr<const storage::Reader>> open_part(const storage::Storage& storage, const std::string& path,
                                                         const std::optional<storage::Version>& version);

// Thread-safe.
class OpeningReader final : public storage::Reader {
 public:
  // A read at the end of a shard also fetches this many preceding bytes, for the footer.
  static constexpr std::uint64_t kTail = std::uint64_t{64} << 10U;
  // Consecutive headers that are closer together than this are fetched by one request. Otherwise, each header is
  // fetched by a separate request, because the bytes between the headers are not needed.
  static constexpr std::uint64_t kNear = std::uint64_t{1} << 20U;
  // The bytes read from a local shard are cached only if there were more reads than this.
  static constexpr std::size_t kFewReads = 16;

  // Does not send a request if parts of the shard are cached and the storage supports reads of a specific version,
  // unless `checks_version` is true.
  static Result<std::unique_ptr<OpeningReader>> open(std::shared_ptr<const storage::Storage> storage,
                                                     const std::string& path, const ShardPartsStore& store,
                                                     bool checks_version);
  OpeningReader(std::shared_ptr<const storage::Storage> storage, std::shared_ptr<const storage::Reader> reader,
                const storage::Version& version, std::optional<ShardParts> stored, bool is_checked);

  // Returns whether the storage has confirmed the version of the object.
  bool is_checked() const { return is_checked_; }
  // Fetches the ranges concurrently. Later reads return the fetched bytes from memory; if a fetch failed, they read the
  // bytes again.
  void bring(std::vector<ByteRange> ranges) const;
  // Caches the bytes read since open(), unless there were few reads, or more bytes were read than is plausible for the
  // metadata of a shard with `shard_bytes` bytes. If `shard_bytes` is nullopt, uses the size of the object.
  Result<void> keep(const ShardPartsStore& store, std::optional<std::uint64_t> shard_bytes = {}) const;
  // The note contains facts that the format derived from the shard. keep() caches the note with the bytes read. A new
  // note replaces the old one.
  std::string note() const;
  void set_note(std::string note) const;
  // Returns a reader that reads the same version of the shard but does not cache, for reading values instead of
  // metadata.
  Result<std::shared_ptr<const storage::Reader>> values() const;
  // Releases bytes that were read ahead, and the open file if the shard is local, because there may be thousands of
  // shards. Later reads are still possible and open the file again.
  void let_go() const;

  Result<storage::ObjectStat> stat() const override { return version_; }
  Result<storage::ObjectStat> version() const override { return version_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  // For local files, returns the usual size of a header, because all bytes that are read are cached.
  std::size_t worthwhile_bytes() const override { return storage_->is_remote() ? Reader::worthwhile_bytes() : kHeader; }
  const std::string& name() const override { return name_; }

 private:
  using Bytes = std::span<const std::byte>;
  static constexpr std::size_t kHeader = 512;

  // Requires: mutex_ is locked.
  std::optional<Bytes> at_hand(std::uint64_t offset, std::size_t count) const;
  Result<void> reopen() const;
  Result<void> fill_window(std::uint64_t offset, std::uint64_t count) const;
  std::optional<ShardParts> joined(std::uint64_t shard_bytes) const;

  const std::shared_ptr<const storage::Storage> storage_;
  const std::string name_;
  const storage::Version version_;
  const std::optional<ShardParts> stored_;
  const bool is_checked_;
  mutable ForkMutex mutex_;
  // guarded by mutex_
  mutable std::shared_ptr<const storage::Reader> reader_;          // nullptr after let_go()
  mutable std::map<std::uint64_t, std::vector<std::byte>> taken_;  // bytes read, by offset
  mutable std::optional<std::string> note_;                        // nullopt: unchanged from the cached parts
  mutable std::vector<std::byte> window_;
  mutable std::uint64_t window_begin_ = 0;
  mutable std::uint64_t last_ = 0;  // offset of the last read
};

// Calls bring() with the result of `ranges` if the reader is an OpeningReader. Otherwise does nothing.
template <typename Ranges>
void bring_together(const storage::Reader& reader, Ranges&& ranges) {
  if (const auto* opening = dynamic_cast<const OpeningReader*>(&reader)) opening->bring(ranges());
}

// Returns the `is_checked` argument of ShardReader for a shard that was opened with this reader.
inline bool is_checked_by(const storage::Reader& reader) {
  const auto* opening = dynamic_cast<const OpeningReader*>(&reader);
  return opening == nullptr || opening->is_checked();
}

}  // namespace feedline::format
