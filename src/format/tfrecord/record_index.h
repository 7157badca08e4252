// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index of a TFRecord file: the positions of its records, with the same layout in memory and on disk.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cache/frame.h"
#include "format/index/persisted_indexes.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// Identifies index files. Increment the number whenever the layout in record_index.cpp changes.
inline constexpr cache::FrameKind kRecordIndex{0x78'64'69'72'66'74'64'66, 2};  // "fdtfridx"

// Immutable and thread-safe.
class RecordIndex {
 public:
  struct Location {
    std::uint64_t offset = 0;  // offset of the record's header in the shard
    std::uint64_t bytes = 0;   // size of the record, including its frame
  };

  // Requires: ends_fit().
  static RecordIndex build(std::span<const std::uint64_t> ends, const storage::ObjectStat& shard);
  // Parses an index file from the first `bytes` bytes of `buffer`. Returns nullopt if the file is truncated or damaged,
  // belongs to a different version of the shard, or has an offset outside the shard. If `shard` is nullopt, accepts any
  // version.
  static std::optional<RecordIndex> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                          const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // version of the shard

  std::uint64_t records() const { return ends_.size(); }
  // Requires: record < records().
  Location location(std::uint64_t record) const {
    const std::uint64_t begin = record == 0 ? 0 : ends_[record - 1];
    return {begin, ends_[record] - begin};
  }
  std::span<const std::uint64_t> ends() const { return ends_; }
  std::span<const std::byte> file_bytes() const { return file_; }

 private:
  RecordIndex() = default;
  bool find_sections();
  bool is_consistent() const;

  memory::ByteBuffer buffer_;
  std::span<std::byte> file_;
  storage::ObjectStat version_;
  std::span<const std::uint64_t> ends_;
};

// Returns whether a file of this size can have records with these ends. Each record must be at least as long as its
// frame, and the last one must end with the file.
bool ends_fit(std::span<const std::uint64_t> ends, std::uint64_t shard_bytes);

// Loads and stores index files. Thread-safe.
class RecordIndexStore : public PersistedIndexes<RecordIndex> {
 public:
  RecordIndexStore(std::string directory, std::shared_ptr<cache::Notes> notes)
      : PersistedIndexes(kRecordIndex, std::move(directory), std::move(notes)) {}
};

}  // namespace feedline::format
