// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index of a tar file: its samples and the positions of their members, with the same layout in memory and on disk.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/frame.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::format {

// Identifies index files. Increment the number whenever the layout in shard_index.cpp changes.
inline constexpr cache::FrameKind kShardIndex{0x78'64'69'6c'64'65'65'66, 3};  // "feedlidx"

// Immutable and thread-safe.
class ShardIndex {
 public:
  struct Member {
    std::uint64_t offset = 0;  // offset of the payload in the shard
    std::uint64_t bytes = 0;
    std::uint32_t extension = 0;  // index for extension()
  };

  // Parses an index file from the first `bytes` bytes of `buffer`. Returns nullopt if the file is truncated or damaged,
  // belongs to a different version of the shard, or has an offset outside the shard. If `shard` is nullopt, accepts any
  // version.
  static std::optional<ShardIndex> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                         const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // version of the shard
  std::uint64_t samples() const { return samples_; }
  std::uint64_t members() const { return member_offsets_.size(); }
  std::uint64_t extensions() const { return extensions_; }
  // Requires: all indexes are in range.
  std::string_view key(std::uint64_t sample) const { return name(extensions_ + sample); }
  std::string_view extension(std::uint64_t number) const { return name(number); }
  std::vector<std::string> class_names() const;  // by label (class_names.h); empty if the shard has none
  std::uint64_t first_member(std::uint64_t sample) const {
    return first_members_[sample];
  }  // samples() returns the
     // end
  Member member(std::uint64_t number) const {
    return {member_offsets_[number], member_bytes_[number], member_extensions_[number]};
  }
  // The integer in a member whose extension is that of integers (usual_kind()); nullopt if the index lacks it: the
  // payload is not an integer, the member is a hard link, or the index was made from another program's index.
  std::optional<std::int64_t> integer(std::uint64_t number) const;
  std::span<const std::byte> file_bytes() const { return file_; }

 private:
  friend class ShardIndexBuilder;
  ShardIndex() = default;
  bool find_sections();
  bool is_consistent() const;
  std::string_view name(std::uint64_t number) const;

  memory::ByteBuffer buffer_;
  std::span<std::byte> file_;
  storage::ObjectStat version_;
  std::uint64_t samples_ = 0, extensions_ = 0, classes_ = 0;
  std::span<const std::uint64_t> member_offsets_, member_bytes_, first_members_, name_ends_;
  std::span<const std::uint64_t> integer_members_;  // ascending
  std::span<const std::int64_t> integers_;          // of integer_members_
  std::span<const std::uint32_t> member_extensions_;
  std::string_view names_;
};

// Not thread-safe.
class ShardIndexBuilder {
 public:
  void add_sample(std::string_view key);
  // Adds a member to the last sample. Requires: there is a sample, and the sample has no member with this extension.
  void add_member(std::string_view extension, std::uint64_t offset, std::uint64_t bytes,
                  std::optional<std::int64_t> integer = {});
  // Requires: number < members().
  void move_member(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes);
  std::uint64_t members() const { return offsets_.size(); }
  bool last_sample_has(std::string_view extension) const;
  void drop_last_sample();
  void name_classes(std::vector<std::string> names) { class_names_ = std::move(names); }
  ShardIndex build(const storage::ObjectStat& shard) const;

 private:
  // Returns the position of an extension in extension_names_. Samples usually have the same extensions in the same
  // order, so the extension that follows the last member's extension is tried first.
  std::optional<std::uint32_t> number_of(std::string_view extension) const;

  std::vector<std::string> keys_;
  std::vector<std::uint64_t> first_members_, offsets_, bytes_, integer_members_;
  std::vector<std::int64_t> integers_;  // of integer_members_
  std::vector<std::uint32_t> extensions_;
  std::vector<std::string> extension_names_, class_names_;
  struct ViewHash {  // allows lookups of an extension without a copy
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint32_t, ViewHash, std::equal_to<>> extension_numbers_;
};

}  // namespace feedline::format
