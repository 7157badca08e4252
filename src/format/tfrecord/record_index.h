// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the records of a TFRecord file are: the table behind random access, in memory and on disk the same bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cache/frame.h"
#include "format/kept_indexes.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// What its file is; another format number with every change of its layout, drawn in record_index.cpp.
inline constexpr cache::FrameKind kRecordIndex{0x78'64'69'72'66'74'64'66, 2};  // "fdtfridx"

// Immutable; any thread may read.
class RecordIndex {
 public:
  struct Place {
    std::uint64_t offset = 0;  // of the record's header in the shard
    std::uint64_t bytes = 0;   // of the record, with its frame
  };

  // Requires: as ends_fit() has them.
  static RecordIndex build(std::span<const std::uint64_t> ends, const storage::ObjectStat& shard);
  // Takes an index file's bytes, all of `buffer`'s first `bytes`. nullopt unless it is whole, undamaged, of a shard of
  // exactly this version (nullopt: whichever it says), and all it says lies inside that shard.
  static std::optional<RecordIndex> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                          const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // of the shard that it is of

  std::uint64_t records() const { return ends_.size(); }
  // Requires: record < records().
  Place place(std::uint64_t record) const {
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

// Can a file of so many bytes have records that end there: each with room for its frame, the last at the file's end?
bool ends_fit(std::span<const std::uint64_t> ends, std::uint64_t shard_bytes);

// As they are kept. Thread-safe.
class RecordIndexStore : public KeptIndexes<RecordIndex> {
 public:
  RecordIndexStore(std::string directory, std::shared_ptr<cache::Notes> notes)
      : KeptIndexes(kRecordIndex, std::move(directory), std::move(notes)) {}
};

}  // namespace feedline::format
