// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which samples a tar file holds and where their members are: the table behind random access, in memory and on disk
// the same bytes.

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

// What its file is; another format number with every change of its layout, drawn in shard_index.cpp.
inline constexpr cache::FrameKind kShardIndex{0x78'64'69'6c'64'65'65'66, 2};  // "feedlidx"

// Immutable; any thread may read.
class ShardIndex {
 public:
  struct Member {
    std::uint64_t offset = 0;  // of the payload in the shard
    std::uint64_t bytes = 0;
    std::uint32_t extension = 0;  // number of an extension()
  };

  // Takes an index file's bytes, all of `buffer`'s first `bytes`. nullopt unless it is whole, undamaged, of a shard
  // of exactly this version (nullopt: whichever it says), and all it says lies inside that shard.
  static std::optional<ShardIndex> parse(memory::ByteBuffer buffer, std::size_t bytes,
                                         const std::optional<storage::ObjectStat>& shard);

  const storage::ObjectStat& version() const { return version_; }  // of the shard that it is of
  std::uint64_t samples() const { return samples_; }
  std::uint64_t members() const { return member_offsets_.size(); }
  std::uint64_t extensions() const { return extensions_; }
  // Requires: numbers below the counts.
  std::string_view key(std::uint64_t sample) const { return name(extensions_ + sample); }
  std::string_view extension(std::uint64_t number) const { return name(number); }
  std::vector<std::string> class_names() const;  // by label (class_names.h); empty: the shard has none
  std::uint64_t first_member(std::uint64_t sample) const { return first_members_[sample]; }  // sample == samples(): end
  Member member(std::uint64_t number) const {
    return {member_offsets_[number], member_bytes_[number], member_extensions_[number]};
  }
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
  std::span<const std::uint32_t> member_extensions_;
  std::string_view names_;
};

// Not for several threads at once.
class ShardIndexBuilder {
 public:
  void add_sample(std::string_view key);
  // Of the sample added last. Requires: one was added, and it has no member with this extension.
  void add_member(std::string_view extension, std::uint64_t offset, std::uint64_t bytes);
  // Requires: number < members().
  void move_member(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes);
  std::uint64_t members() const { return offsets_.size(); }
  bool last_sample_has(std::string_view extension) const;
  void drop_last_sample();
  void name_classes(std::vector<std::string> names) { class_names_ = std::move(names); }
  ShardIndex build(const storage::ObjectStat& shard) const;

 private:
  std::vector<std::string> keys_;
  std::vector<std::uint64_t> first_members_, offsets_, bytes_;
  std::vector<std::uint32_t> extensions_;
  std::vector<std::string> extension_names_, class_names_;
  struct ViewHash {  // so that a member's extension is found without a copy of it
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint32_t, ViewHash, std::equal_to<>> extension_numbers_;
};

}  // namespace feedline::format
