// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shard while it is opened. Behind a network: few requests, and none where what they brought was kept.
//
//   read_at() ──► what was kept (shard_parts.h) ──► what came meanwhile ──► a request, for somewhat more than was asked
//                                                                           for: see kTail, kNear
//   bring()   ──► many requests side by side
//
// What was read is kept by keep(), with what the format noted: another opening of the same fields then makes no
// request. On this machine reads are as small as they are asked for, and kept where they were many.

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

// Is the first read of a shard a copy of all of it, as there is a cache?
bool copies_whole(const storage::Storage& storage);
// A reader for what an opening wants of a shard: past such a cache, unless it has the shard already. version: nullopt:
// whichever it is now.
Result<std::shared_ptr<const storage::Reader>> open_part(const storage::Storage& storage, const std::string& path,
                                                         const std::optional<storage::Version>& version);

// Thread-safe.
class OpeningReader final : public storage::Reader {
 public:
  // With the last of a shard come so many bytes before it, a footer's.
  static constexpr std::uint64_t kTail = std::uint64_t{64} << 10U;
  // Whoever goes from header to header by smaller steps than this gets several of them by a request; by larger ones
  // each is a request of its own, as what lies between is not wanted.
  static constexpr std::uint64_t kNear = std::uint64_t{1} << 20U;
  // Of a shard on this machine no more reads than these are worth a file that keeps what they brought.
  static constexpr std::size_t kFewReads = 16;

  // Of a storage that holds reads to a version nobody is asked where parts are kept, unless `asks`.
  static Result<std::unique_ptr<OpeningReader>> open(std::shared_ptr<const storage::Storage> storage,
                                                     const std::string& path, const ShardPartsStore& store, bool asks);
  OpeningReader(std::shared_ptr<const storage::Storage> storage, std::shared_ptr<const storage::Reader> reader,
                const storage::Version& version, std::optional<ShardParts> kept, bool is_checked);

  // Was the storage asked whether the object is that version?
  bool is_checked() const { return is_checked_; }
  // Has all of these side by side, as far as that is possible: whoever reads them then finds them, or says why not.
  void bring(std::vector<ByteRange> ranges) const;
  // Keeps what was read since open(), unless that was little work, or is so much that it is no description of a shard
  // of so many bytes (nullopt: of what it reads).
  Result<void> keep(const ShardPartsStore& store, std::optional<std::uint64_t> shard_bytes = {}) const;
  // What the format found out from values of the shard, which keep() keeps with what was read. A new note replaces it.
  std::string note() const;
  void set_note(std::string note) const;
  // The same version of the shard, of which no read is kept: for values, which do not describe it.
  Result<std::shared_ptr<const storage::Reader>> values() const;
  // Of what came with what was asked for, and of a file of this machine, as there may be thousands: the opening goes on
  // later.
  void let_go() const;

  Result<storage::ObjectStat> stat() const override { return version_; }
  Result<storage::ObjectStat> version() const override { return version_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  // On this machine what most headers have: all that is read is kept.
  std::size_t worthwhile_bytes() const override { return storage_->is_remote() ? Reader::worthwhile_bytes() : kHeader; }
  const std::string& name() const override { return name_; }

 private:
  using Bytes = std::span<const std::byte>;
  static constexpr std::size_t kHeader = 512;

  // Under mutex_.
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
  mutable std::shared_ptr<const storage::Reader> reader_;          // nullptr: it was let go of
  mutable std::map<std::uint64_t, std::vector<std::byte>> taken_;  // what was read, by its offset
  mutable std::optional<std::string> note_;                        // nullopt: as it was kept
  mutable std::vector<std::byte> window_;
  mutable std::uint64_t window_begin_ = 0;
  mutable std::uint64_t last_ = 0;  // where the last read began
};

// bring(), where it is one of these: for who reads a shard of any storage. `ranges` makes the list, where it is wanted.
template <typename Ranges>
void bring_together(const storage::Reader& reader, Ranges&& ranges) {
  if (const auto* opening = dynamic_cast<const OpeningReader*>(&reader)) opening->bring(ranges());
}

// As ShardReader wants to know it of a shard that was opened by this reader.
inline bool is_checked_by(const storage::Reader& reader) {
  const auto* opening = dynamic_cast<const OpeningReader*>(&reader);
  return opening == nullptr || opening->is_checked();
}

}  // namespace feedline::format
