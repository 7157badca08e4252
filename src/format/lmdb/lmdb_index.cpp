// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_index.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// The layout of an index file with E entries, sorted by key, stored as a frame (cache/frame.h).
//
//     numbers     size of the LMDB file, its stamp (storage/reader.h), its page size, the transaction, the database's
//                 flags, E, bytes of all keys
//     8 x E       offset of each value's frame (LmdbTable::places)
//     8 x E       end of each key in the keys
//     4 x E       bytes of each value
//                 the keys, concatenated
enum Number : std::size_t { kFileBytes, kFileStamp, kPageSize, kTransaction, kFlags, kEntries, kKeyBytes, kNumbers };

}  // namespace

LmdbIndex LmdbIndex::build(const LmdbWalk& walk, const storage::ObjectStat& file) {
  const LmdbTable& table = walk.table;
  cache::FrameBuilder builder(kLmdbIndex, {file.bytes, file.stamp(), walk.meta.page_bytes, walk.meta.transaction,
                                           walk.flags, table.size(), table.keys.size()});
  builder.add(table.locations);
  builder.add(table.key_ends);
  builder.add(table.value_bytes);
  builder.add(table.keys);
  LmdbIndex index;
  index.file_ = builder.write(index.buffer_);
  FEEDLINE_CHECK(index.find_sections() && index.is_consistent(file));
  return index;
}

std::optional<LmdbIndex> LmdbIndex::parse(memory::ByteBuffer buffer, std::size_t bytes,
                                          const storage::ObjectStat& file) {
  LmdbIndex index;
  index.buffer_ = std::move(buffer);
  index.file_ = index.buffer_.resize(bytes);  // does not reallocate, so views into it stay valid
  if (!index.find_sections() || !index.is_consistent(file)) return {};
  return index;
}

bool LmdbIndex::find_sections() {
  cache::FrameReader reader(file_, kLmdbIndex, kNumbers);
  file_size_ = reader.number(kFileBytes);
  file_stamp_ = reader.number(kFileStamp);
  page_bytes_ = reader.number(kPageSize);
  transaction_ = reader.number(kTransaction);
  flags_ = reader.number(kFlags);
  const std::uint64_t entries = reader.count(kEntries), key_bytes = reader.count(kKeyBytes);
  locations_ = reader.take<std::uint64_t>(entries);
  key_ends_ = reader.take<std::uint64_t>(entries);
  value_bytes_ = reader.take<std::uint32_t>(entries);
  const auto keys = reader.take<char>(key_bytes);
  keys_ = {keys.data(), keys.size()};
  return reader.is_whole();
}

bool LmdbIndex::is_consistent(const storage::ObjectStat& file) const {
  if (file_size_ != file.bytes || file_stamp_ != file.stamp() || page_bytes_ == 0 || !cache::is_undamaged(file_))
    return false;
  std::uint64_t before = 0;
  for (const std::uint64_t end : key_ends_) {
    if (end <= before || end > keys_.size()) return false;
    before = end;
  }
  if (before != keys_.size()) return false;
  for (std::uint64_t i = 0; i < size(); ++i) {
    const Location frame = location(i);
    if (frame.offset > file.bytes || frame.bytes > file.bytes - frame.offset) return false;
  }
  return true;
}

LmdbIndex::Location LmdbIndex::location(std::uint64_t entry) const {
  const std::uint64_t location = locations_[entry], bytes = value_bytes_[entry];
  const bool on_own_pages = (location & LmdbTable::kOnOwnPages) != 0;
  const std::uint64_t before = on_own_pages ? kPageHeaderBytes : kNodeHeaderBytes + key(entry).size();
  return {location & ~LmdbTable::kOnOwnPages, before + bytes, bytes, on_own_pages};
}

std::string LmdbIndex::key_text(std::uint64_t entry) const {
  const std::string_view raw = key(entry);
  std::uint64_t number = 0;
  if ((flags_ & kNumberKeys) == 0 || raw.size() > sizeof number) return std::string(raw);
  std::memcpy(&number, raw.data(), raw.size());
  return std::to_string(number);
}

std::expected<Bytes, std::string> LmdbIndex::value_in(Bytes frame, std::uint64_t entry) const {
  const Location location = this->location(entry);
  const std::string_view key = this->key(entry);
  if (frame.size() < location.bytes) return std::unexpected("is cut");
  if (location.on_own_pages) {
    const std::uint64_t pages = (location.bytes + page_bytes_ - 1) / page_bytes_;
    if (!begins_value(frame, location.offset / page_bytes_, pages))
      return std::unexpected("is not at its position in the index: no page of values begins there");
    return frame.subspan(kPageHeaderBytes, location.value_bytes);
  }
  if (number_at<std::uint32_t>(frame, 0) != location.value_bytes || number_at<std::uint16_t>(frame, 4) != 0 ||
      number_at<std::uint16_t>(frame, 6) != key.size() ||
      std::memcmp(frame.data() + kNodeHeaderBytes, key.data(), key.size()) != 0)
    return std::unexpected("is not at its position in the index: another entry is there");
  return frame.subspan(kNodeHeaderBytes + key.size(), location.value_bytes);
}

}  // namespace feedline::format
