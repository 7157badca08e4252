// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index of an LMDB file: the position of each value, with the same layout in memory and on disk.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/frame.h"
#include "format/index/persisted_indexes.h"
#include "format/lmdb/lmdb_walk.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// Identifies index files. Increment the number whenever the layout in lmdb_index.cpp changes.
inline constexpr cache::FrameKind kLmdbIndex{0x78'64'69'62'64'6d'6c'66, 1};  // "flmdbidx"

// Immutable and thread-safe.
class LmdbIndex {
 public:
  // The position of the frame that contains a value.
  struct Location {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // size of the frame
    std::uint64_t value_bytes = 0;
    bool on_own_pages = false;
  };

  // Requires: `walk` has no findings and comes from this version of the file.
  static LmdbIndex build(const LmdbWalk& walk, const storage::ObjectStat& file);
  // Parses an index file from the first `bytes` bytes of `buffer`. Returns nullopt if the file is truncated or damaged,
  // belongs to a different version of the database, or has a frame outside the database.
  static std::optional<LmdbIndex> parse(memory::ByteBuffer buffer, std::size_t bytes, const storage::ObjectStat& file);

  std::uint64_t size() const { return locations_.size(); }
  // Requires: entry < size().
  Location location(std::uint64_t entry) const;
  std::string_view key(std::uint64_t entry) const {
    const std::uint64_t begin = entry == 0 ? 0 : key_ends_[entry - 1];
    return keys_.substr(begin, key_ends_[entry] - begin);
  }
  // Returns the key in readable form: digits if the database has integer keys.
  std::string key_text(std::uint64_t entry) const;
  std::uint64_t page_bytes() const { return page_bytes_; }
  std::uint64_t transaction() const { return transaction_; }
  // Returns the value in a frame, or an error message that completes a sentence if the frame does not match the index.
  std::expected<std::span<const std::byte>, std::string> value_in(std::span<const std::byte> frame,
                                                                  std::uint64_t entry) const;
  std::span<const std::byte> file_bytes() const { return file_; }

 private:
  LmdbIndex() = default;
  bool find_sections();
  bool is_consistent(const storage::ObjectStat& file) const;

  memory::ByteBuffer buffer_;
  std::span<std::byte> file_;
  std::uint64_t file_size_ = 0, file_stamp_ = 0, page_bytes_ = 0, transaction_ = 0, flags_ = 0;
  std::span<const std::uint64_t> locations_, key_ends_;
  std::span<const std::uint32_t> value_bytes_;
  std::string_view keys_;
};

// Loads and stores index files. Thread-safe.
class LmdbIndexStore : public PersistedIndexes<LmdbIndex> {
 public:
  LmdbIndexStore(std::string directory, std::shared_ptr<cache::Notes> notes)
      : PersistedIndexes(kLmdbIndex, std::move(directory), std::move(notes)) {}
};

}  // namespace feedline::format
