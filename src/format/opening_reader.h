// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a shard while it is opened: remotely with few requests, and with none if the bytes are cached.
//
//   read_at() ──► cached parts (shard_parts.h) ──► bytes already fetched ──► a request for somewhat more than the
//                                                                            given range: see kTail, kNear
//   bring()   ──► many concurrent requests
//
// keep() caches the bytes read and the format's note, so that the next opening of the same fields makes no requests.
// Local reads have exactly the requested size, and are cached only if there were many.

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
#include "format/shard_parts.h"
#include "storage/reader.h"
#include "storage/storage.h"

namespace feedline::format {

struct ByteRange {
  std::uint64_t offset = 0, bytes = 0;
};

// True if the first read of a shard copies all of it to a cache.
bool copies_whole(const storage::Storage& storage);
// A reader for opening a shard, which bypasses such a cache unless the shard is in it. version: nullopt for the current
// version.
Result<std::shared_ptr<const storage::Reader>> open_part(const storage::Storage& storage, const std::string& path,
                                                         const std::optional<storage::Version>& version);

// Thread-safe.
class OpeningReader final : public storage::Reader {
 public:
  // A read of the end of a shard also fetches this many bytes before it, for the footer.
  static constexpr std::uint64_t kTail = std::uint64_t{64} << 10U;
  // If consecutive headers are nearer to each other than this, one request fetches several of them; otherwise each
  // header is a separate request, since the bytes between are not needed.
  static constexpr std::uint64_t kNear = std::uint64_t{1} << 20U;
  // Up to this many reads of a local shard are not worth a cache file.
  static constexpr std::size_t kFewReads = 16;

  // If parts are cached and the storage makes reads conditional on a version, opens without a request, unless `asks`.
  static Result<std::unique_ptr<OpeningReader>> open(std::shared_ptr<const storage::Storage> storage,
                                                     const std::string& path, const ShardPartsStore& store, bool asks);
  OpeningReader(std::shared_ptr<const storage::Storage> storage, std::shared_ptr<const storage::Reader> reader,
                const storage::Version& version, std::optional<ShardParts> kept, bool is_checked);

  // True if the storage has confirmed that the object has that version.
  bool is_checked() const { return is_checked_; }
  // Fetches all ranges concurrently, as far as possible. Later reads find the bytes in memory, or report the error.
  void bring(std::vector<ByteRange> ranges) const;
  // Caches the bytes read since open(), unless there were few reads, or too many bytes for metadata of a shard of
  // `shard_bytes` (nullopt: the size of the object).
  Result<void> keep(const ShardPartsStore& store, std::optional<std::uint64_t> shard_bytes = {}) const;
  // Facts that the format derived from values of the shard, which keep() caches with the bytes read. A new note
  // replaces the old one.
  std::string note() const;
  void set_note(std::string note) const;
  // A reader of the same version of the shard that caches nothing, for values, which are not metadata.
  Result<std::shared_ptr<const storage::Reader>> values() const;
  // Releases bytes that were read ahead and, if local, the open file: there may be thousands of shards. The opening can
  // continue later.
  void let_go() const;

  Result<storage::ObjectStat> stat() const override { return version_; }
  Result<storage::ObjectStat> version() const override { return version_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  // Locally the size of most headers, because all bytes read are cached.
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
  const std::optional<ShardParts> kept_;
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

// Calls bring() if the reader is an OpeningReader, for callers that accept any reader. Calls `ranges` only if needed.
template <typename Ranges>
void bring_together(const storage::Reader& reader, Ranges&& ranges) {
  if (const auto* opening = dynamic_cast<const OpeningReader*>(&reader)) opening->bring(ranges());
}

// The `is_checked` argument of ShardReader, for a shard that was opened with this reader.
inline bool is_checked_by(const storage::Reader& reader) {
  const auto* opening = dynamic_cast<const OpeningReader*>(&reader);
  return opening == nullptr || opening->is_checked();
}

}  // namespace feedline::format
