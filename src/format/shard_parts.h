// SPDX-License-Identifier: Apache-2.0
#pragma once

// What opening a shard has read of it: a footer, tables of offsets, headers; and what its format has found out from
// values. With them a shard behind a network is opened without a request, and a shard on this machine by one read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/frame.h"
#include "format/kept_indexes.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::format {

// What its file is; another format number with every change of its layout, drawn in shard_parts.cpp.
inline constexpr cache::FrameKind kShardParts{0x73'74'72'61'70'64'65'66, 2};  // "fedparts"

// Parts of one version of an object, apart from each other, in their order. Immutable; any thread may read.
class ShardParts {
 public:
  struct Part {
    std::uint64_t offset = 0;  // in the shard
    std::span<const std::byte> bytes;
  };
  // Requires: they lie apart, in their order, inside of the shard, and none is empty. note: of the format, which alone
  // knows its layout.
  static ShardParts build(std::span<const Part> parts, const storage::ObjectStat& shard, std::string_view note = {});
  // Takes an index file's bytes, all of `buffer`'s first `bytes`. nullopt unless it is whole, undamaged, of a shard of
  // exactly this version (nullopt: whichever it says), and its parts lie inside that shard as build() requires.
  static std::optional<ShardParts> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                         const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // of the shard that they are of
  std::uint64_t size() const { return offsets_.size(); }
  Part part(std::uint64_t number) const;  // Requires: number < size()
  // The shard's bytes [offset, offset + count); nullopt: they are not all here.
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
  std::span<const std::uint64_t> offsets_, ends_;  // in the shard; in bytes_
  std::span<const std::byte> bytes_;
  std::span<const char> note_;
};

// As they are kept: never beside a shard, as `datasets` takes what is in a folder of Parquet for data. Thread-safe.
class ShardPartsStore : public KeptIndexes<ShardParts> {
 public:
  explicit ShardPartsStore(std::string directory, std::shared_ptr<cache::Notes> notes = nullptr)
      : KeptIndexes(kShardParts, std::move(directory), std::move(notes), false) {}
};

}  // namespace feedline::format
