// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a shard that are read when it is opened (footer, offset tables, headers), and facts that the format
// derived from values. With these parts, opening a remote shard needs no requests, and opening a local shard needs only
// one read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/frame.h"
#include "format/index/persisted_indexes.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::format {

// Identifies the files of shard parts. Increment the number whenever the layout in shard_parts.cpp changes.
inline constexpr cache::FrameKind kShardParts{0x73'74'72'61'70'64'65'66, 2};  // "fedparts"

// Disjoint parts of one version of an object, sorted by offset. Immutable and thread-safe.
class ShardParts {
 public:
  struct Part {
    std::uint64_t offset = 0;  // in the shard
    std::span<const std::byte> bytes;
  };
  // Requires: the parts are disjoint, sorted, inside the shard, and not empty. `note` is opaque data from the format.
  static ShardParts build(std::span<const Part> parts, const storage::ObjectStat& shard, std::string_view note = {});
  // Parses an index file from the first `bytes` bytes of `buffer`. Returns nullopt if the file is truncated or damaged,
  // belongs to a different version of the shard, or has parts that do not satisfy the requirements of build(). If
  // `shard` is nullopt, accepts any version.
  static std::optional<ShardParts> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                         const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // version of the shard
  std::uint64_t size() const { return offsets_.size(); }
  Part part(std::uint64_t number) const;  // Requires: number < size()
  // Returns the shard's bytes [offset, offset + count), or nullopt if not all of them are stored.
  std::optional<std::span<const std::byte>> find(std::uint64_t offset, std::size_t count) const;
  std::string_view note() const { return {note_.data(), note_.size()}; }
  std::span<const std::byte> file_bytes() const { return file_; }

 private:
  ShardParts() = default;
  bool find_sections();
  bool is_consistent() const;

  memory::ByteBuffer buffer_;
  std::span<std::byte> file_;
  storage::ObjectStat version_;
  std::span<const std::uint64_t> offsets_, ends_;  // offsets in the shard; ends in bytes_
  std::span<const std::byte> bytes_;
  std::span<const char> note_;
};

// Loads and stores shard parts. Parts are never stored next to a shard, because Hugging Face's `datasets` reads every
// file in a folder of Parquet files as data. Thread-safe.
class ShardPartsStore : public PersistedIndexes<ShardParts> {
 public:
  explicit ShardPartsStore(std::string directory, std::shared_ptr<cache::Notes> notes = nullptr)
      : PersistedIndexes(kShardParts, std::move(directory), std::move(notes), false) {}
};

}  // namespace feedline::format
