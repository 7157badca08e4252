// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// An index file, little-endian. S samples, M members, E extensions, N bytes of names; every section 8-byte aligned.
//
//      0  8       "feedlidx"
//      8  8       version
//     16  8       size of the shard
//     24  8       modification time of the shard, ns since 1970
//     32  8 x 4   S, M, E, N
//     64  8 x M   offset of each member's payload in the shard
//         8 x M   size of each member's payload
//         8 x S+1 number of the first member of each sample; the last is M
//         8 x E+S end of each name in the names: first the extensions, then the keys
//         4 x M   extension of each member, padded to 8
//         N       names, padded to 8
//     -8  8       XXH3-64 of everything before
static_assert(std::endian::native == std::endian::little, "index files are read in place");

constexpr std::uint64_t kMagic = 0x78'64'69'6c'64'65'65'66;  // "feedlidx"
constexpr std::uint64_t kVersion = 1;

struct Head {
  std::uint64_t magic, version, shard_bytes;
  std::int64_t shard_mtime_ns;
  std::uint64_t samples, members, extensions, name_bytes;
};
static_assert(sizeof(Head) == 64);
constexpr std::size_t kSumBytes = 8;

constexpr std::uint64_t pad8(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// The size of the file that such a head describes; nullopt where no file could be that large.
std::optional<std::uint64_t> file_size(const Head& head) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // far above any index, far below overflow
  if (head.samples > kMost || head.members > kMost || head.extensions > kMost || head.name_bytes > kMost) return {};
  return sizeof(Head) + 8 * (2 * head.members + head.samples + 1 + head.extensions + head.samples) +
         pad8(4 * head.members) + pad8(head.name_bytes) + kSumBytes;
}

std::uint64_t stored_sum(std::span<const std::byte> file) {
  std::uint64_t sum = 0;
  std::memcpy(&sum, file.data() + file.size() - kSumBytes, kSumBytes);
  return sum;
}

// Is each value at least the one before, and the last exactly `end`?
bool ascends_to(std::span<const std::uint64_t> values, std::uint64_t end) {
  return std::ranges::is_sorted(values) && (values.empty() ? end == 0 : values.back() == end);
}

}  // namespace

std::optional<ShardIndex> ShardIndex::parse(memory::ByteBuffer buffer, std::size_t bytes,
                                            const storage::ObjectStat& shard) {
  ShardIndex index;
  index.buffer_ = std::move(buffer);
  index.file_ = index.buffer_.resize(bytes);  // no growth: what is in it stays
  if (!index.find_sections() || !index.is_consistent(shard)) return {};
  return index;
}

// The one place that knows the order of the sections.
bool ShardIndex::find_sections() {
  Head head;
  if (file_.size() < sizeof head) return false;
  std::memcpy(&head, file_.data(), sizeof head);
  if (head.magic != kMagic || head.version != kVersion || file_size(head) != file_.size()) return false;
  samples_ = head.samples;
  extensions_ = head.extensions;
  const std::byte* section = file_.data() + sizeof head;
  const auto take = [&section]<typename T>(std::span<const T>& values, std::uint64_t count) {
    values = {reinterpret_cast<const T*>(section), count};
    section += pad8(count * sizeof(T));
  };
  take(member_offsets_, head.members);
  take(member_bytes_, head.members);
  take(first_members_, head.samples + 1);
  take(name_ends_, head.extensions + head.samples);
  take(member_extensions_, head.members);
  names_ = {reinterpret_cast<const char*>(section), head.name_bytes};
  return true;
}

bool ShardIndex::is_consistent(const storage::ObjectStat& shard) const {
  Head head;
  std::memcpy(&head, file_.data(), sizeof head);
  if (head.shard_bytes != shard.bytes || head.shard_mtime_ns != shard.mtime_ns) return false;
  if (xxh3(file_.first(file_.size() - kSumBytes)) != stored_sum(file_)) return false;
  if (!ascends_to(first_members_, members()) || first_members_[0] != 0) return false;
  if (!ascends_to(name_ends_, names_.size())) return false;
  for (std::uint64_t i = 0; i < members(); ++i) {
    if (member_extensions_[i] >= extensions_) return false;
    if (member_offsets_[i] > shard.bytes || member_bytes_[i] > shard.bytes - member_offsets_[i]) return false;
  }
  return true;
}

std::string_view ShardIndex::name(std::uint64_t number) const {
  const std::uint64_t begin = number == 0 ? 0 : name_ends_[number - 1];
  return names_.substr(begin, name_ends_[number] - begin);
}

void ShardIndexBuilder::add_sample(std::string_view key) {
  keys_.emplace_back(key);
  first_members_.push_back(offsets_.size());
}

void ShardIndexBuilder::add_member(std::string_view extension, std::uint64_t offset, std::uint64_t bytes) {
  FEEDLINE_CHECK(!keys_.empty());
  const auto [found, inserted] =
      extension_numbers_.try_emplace(std::string(extension), static_cast<std::uint32_t>(extension_names_.size()));
  if (inserted) extension_names_.emplace_back(extension);
  offsets_.push_back(offset);
  bytes_.push_back(bytes);
  extensions_.push_back(found->second);
}

bool ShardIndexBuilder::last_sample_has(std::string_view extension) const {
  const auto found = extension_numbers_.find(std::string(extension));
  if (found == extension_numbers_.end() || first_members_.empty()) return false;
  const auto members = std::span(extensions_).subspan(first_members_.back());
  return std::ranges::find(members, found->second) != members.end();
}

void ShardIndexBuilder::drop_last_sample() {
  offsets_.resize(first_members_.back());
  bytes_.resize(first_members_.back());
  extensions_.resize(first_members_.back());
  first_members_.pop_back();
  keys_.pop_back();
}

ShardIndex ShardIndexBuilder::build(const storage::ObjectStat& shard) const {
  std::string names;
  std::vector<std::uint64_t> name_ends;
  for (const auto* list : {&extension_names_, &keys_})
    for (const std::string& name : *list) {
      names += name;
      name_ends.push_back(names.size());
    }
  const Head head{
      kMagic,      kVersion, shard.bytes, shard.mtime_ns, keys_.size(), offsets_.size(), extension_names_.size(),
      names.size()};
  std::vector<std::uint64_t> first_members = first_members_;
  first_members.push_back(offsets_.size());

  ShardIndex index;
  index.file_ = index.buffer_.resize(file_size(head).value());
  std::ranges::fill(index.file_, std::byte{0});
  std::byte* out = index.file_.data();
  const auto put = [&out](const void* data, std::size_t bytes) {
    if (bytes > 0) std::memcpy(out, data, bytes);
    out += pad8(bytes);
  };
  put(&head, sizeof head);
  put(offsets_.data(), 8 * offsets_.size());
  put(bytes_.data(), 8 * bytes_.size());
  put(first_members.data(), 8 * first_members.size());
  put(name_ends.data(), 8 * name_ends.size());
  put(extensions_.data(), 4 * extensions_.size());
  put(names.data(), names.size());
  const std::uint64_t sum = xxh3(index.file_.first(index.file_.size() - kSumBytes));
  put(&sum, sizeof sum);
  FEEDLINE_CHECK(index.find_sections() && index.is_consistent(shard));
  return index;
}

}  // namespace feedline::format
