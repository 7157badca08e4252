// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

// The layout of an index file with S samples, M members, E extensions, C classes, I integers and N bytes of names,
// stored as a frame (cache/frame.h).
//
//     numbers     version of the shard (size, time, tag: storage/reader.h), S, M, E, C, N, I
//     8 x M       offset of each member's payload in the shard
//     8 x M       size of each member's payload
//     8 x S+1     number of the first member of each sample; the last is M
//     8 x E+S+C   end of each name in the names: first the extensions, then the keys, then the classes
//     8 x I       number of each member whose integer is stored
//     8 x I       these integers
//     4 x M       extension of each member
//     N           names
enum Number : std::size_t {
  kShardBytes,
  kShardTime,
  kShardTag,
  kSamples,
  kMembers,
  kExtensions,
  kClasses,
  kNameBytes,
  kIntegers,
  kNumbers
};

// Returns whether the values do not decrease and the last one is `end`.
bool ascends_to(std::span<const std::uint64_t> values, std::uint64_t end) {
  return std::ranges::is_sorted(values) && (values.empty() ? end == 0 : values.back() == end);
}

}  // namespace

std::optional<ShardIndex> ShardIndex::parse(memory::ByteBuffer buffer, std::size_t bytes,
                                            const std::optional<storage::ObjectStat>& shard) {
  ShardIndex index;
  index.buffer_ = std::move(buffer);
  index.file_ = index.buffer_.resize(bytes);  // does not reallocate, so views into it stay valid
  if (!index.find_sections() || (shard && *shard != index.version_) || !index.is_consistent()) return {};
  return index;
}

// Finds the sections in the order in which they are stored. No other function depends on this order.
bool ShardIndex::find_sections() {
  cache::FrameReader reader(file_, kShardIndex, kNumbers);
  version_ = {reader.number(kShardBytes), static_cast<std::int64_t>(reader.number(kShardTime)),
              reader.number(kShardTag)};
  samples_ = reader.count(kSamples);
  extensions_ = reader.count(kExtensions);
  classes_ = reader.count(kClasses);
  const std::uint64_t members = reader.count(kMembers), name_bytes = reader.count(kNameBytes);
  const std::uint64_t integers = reader.count(kIntegers);
  member_offsets_ = reader.take<std::uint64_t>(members);
  member_bytes_ = reader.take<std::uint64_t>(members);
  first_members_ = reader.take<std::uint64_t>(samples_ + 1);
  name_ends_ = reader.take<std::uint64_t>(extensions_ + samples_ + classes_);
  integer_members_ = reader.take<std::uint64_t>(integers);
  integers_ = reader.take<std::int64_t>(integers);
  member_extensions_ = reader.take<std::uint32_t>(members);
  const auto names = reader.take<char>(name_bytes);
  names_ = {names.data(), names.size()};
  return reader.is_whole();
}

bool ShardIndex::is_consistent() const {
  if (!cache::is_undamaged(file_)) return false;
  if (!ascends_to(first_members_, members()) || first_members_[0] != 0) return false;
  if (!ascends_to(name_ends_, names_.size())) return false;
  // each member at most once, so that a search finds its integer
  if (!std::ranges::is_sorted(integer_members_, std::ranges::less_equal())) return false;
  if (!integer_members_.empty() && integer_members_.back() >= members()) return false;
  for (std::uint64_t i = 0; i < members(); ++i) {
    if (member_extensions_[i] >= extensions_) return false;
    if (member_offsets_[i] > version_.bytes || member_bytes_[i] > version_.bytes - member_offsets_[i]) return false;
  }
  return true;
}

std::string_view ShardIndex::name(std::uint64_t number) const {
  const std::uint64_t begin = number == 0 ? 0 : name_ends_[number - 1];
  return names_.substr(begin, name_ends_[number] - begin);
}

std::optional<std::int64_t> ShardIndex::integer(std::uint64_t number) const {
  const auto found = std::ranges::lower_bound(integer_members_, number);
  if (found == integer_members_.end() || *found != number) return {};
  return integers_[static_cast<std::size_t>(found - integer_members_.begin())];
}

std::vector<std::string> ShardIndex::class_names() const {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < classes_; ++i) names.emplace_back(name(extensions_ + samples_ + i));
  return names;
}

void ShardIndexBuilder::add_sample(std::string_view key) {
  keys_.emplace_back(key);
  first_members_.push_back(offsets_.size());
}

void ShardIndexBuilder::add_member(std::string_view extension, std::uint64_t offset, std::uint64_t bytes,
                                   std::optional<std::int64_t> integer) {
  FEEDLINE_CHECK(!keys_.empty());
  if (integer) {
    integer_members_.push_back(members());
    integers_.push_back(*integer);
  }
  auto number = number_of(extension);
  if (!number) {
    number = static_cast<std::uint32_t>(extension_names_.size());
    extension_numbers_.emplace(extension, *number);
    extension_names_.emplace_back(extension);
  }
  offsets_.push_back(offset);
  bytes_.push_back(bytes);
  extensions_.push_back(*number);
}

std::optional<std::uint32_t> ShardIndexBuilder::number_of(std::string_view extension) const {
  if (extension_names_.empty()) return {};
  const std::uint32_t next = extensions_.empty() ? 0 : extensions_.back() + 1;
  const std::uint32_t expected = next < extension_names_.size() ? next : 0;
  if (extension_names_[expected] == extension) return expected;
  const auto found = extension_numbers_.find(extension);
  return found == extension_numbers_.end() ? std::nullopt : std::optional(found->second);
}

void ShardIndexBuilder::move_member(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) {
  FEEDLINE_CHECK(number < members());
  offsets_[number] = offset;
  bytes_[number] = bytes;
}

bool ShardIndexBuilder::last_sample_has(std::string_view extension) const {
  if (first_members_.empty()) return false;
  const auto members = std::span(extensions_).subspan(first_members_.back());
  if (members.empty()) return false;
  const auto number = number_of(extension);
  return number && std::ranges::find(members, *number) != members.end();
}

void ShardIndexBuilder::drop_last_sample() {
  offsets_.resize(first_members_.back());
  bytes_.resize(first_members_.back());
  extensions_.resize(first_members_.back());
  while (!integer_members_.empty() && integer_members_.back() >= members()) {
    integer_members_.pop_back();
    integers_.pop_back();
  }
  first_members_.pop_back();
  keys_.pop_back();
}

ShardIndex ShardIndexBuilder::build(const storage::ObjectStat& shard) const {
  std::string names;
  std::vector<std::uint64_t> name_ends;
  for (const auto* list : {&extension_names_, &keys_, &class_names_})
    for (const std::string& name : *list) {
      names += name;
      name_ends.push_back(names.size());
    }
  std::vector<std::uint64_t> first_members = first_members_;
  first_members.push_back(offsets_.size());

  cache::FrameBuilder builder(
      kShardIndex, {shard.bytes, static_cast<std::uint64_t>(shard.mtime_ns), shard.tag, keys_.size(), offsets_.size(),
                    extension_names_.size(), class_names_.size(), names.size(), integers_.size()});
  builder.add(offsets_);
  builder.add(bytes_);
  builder.add(first_members);
  builder.add(name_ends);
  builder.add(integer_members_);
  builder.add(integers_);
  builder.add(extensions_);
  builder.add(names);
  ShardIndex index;
  index.file_ = builder.write(index.buffer_);
  FEEDLINE_CHECK(index.find_sections() && index.is_consistent());
  return index;
}

}  // namespace feedline::format
