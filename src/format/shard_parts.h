// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a shard that opening it reads (footer, offset tables, headers) and facts that its format derived from
// values. With them, opening a remote shard takes no request, and opening a local one takes a single read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/frame.h"
#include "format/persisted_indexes.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::format {

// The kind of its file. The number changes with the layout, which shard_parts.cpp describes.
inline constexpr cache::FrameKind kShardParts{0x73'74'72'61'70'64'65'66, 2};  // "fedparts"

// Disjoint parts of one version of an object, in order. Immutable and thread-safe.
class ShardParts {
 public:
  struct Part {
    std::uint64_t offset = 0;  // in the shard
    std::span<const std::byte> bytes;
  };
  // Requires: the parts are disjoint, sorted, inside the shard, and not empty. note: opaque data of the format.
  static ShardParts build(std::span<const Part> parts, const storage::ObjectStat& shard, std::string_view note = {});
  // Parses an index file, the first `bytes` bytes of `buffer`. nullopt unless it is complete, undamaged, of a shard
  // with exactly this version (nullopt: any version), and its parts satisfy the requirements of build().
  static std::optional<ShardParts> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                         const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // version of the shard
  std::uint64_t size() const { return offsets_.size(); }
  Part part(std::uint64_t number) const;  // Requires: number < size()
  // The shard's bytes [offset, offset + count); nullopt unless all of them are stored here.
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

// The store of shard parts. They are never next to a shard, because `datasets` reads every file in a folder of Parquet
// files as data. Thread-safe.
class ShardPartsStore : public PersistedIndexes<ShardParts> {
 public:
  explicit ShardPartsStore(std::string directory, std::shared_ptr<cache::Notes> notes = nullptr)
      : PersistedIndexes(kShardParts, std::move(directory), std::move(notes), false) {}
};

}  // namespace feedline::format
