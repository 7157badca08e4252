// SPDX-License-Identifier: Apache-2.0
#include "format/columns/column_shard.h"

#include <cstring>
#include <limits>
#include <string>

#include "format/opening_reader.h"
#include "storage/version.h"

namespace feedline::format {
namespace {

std::unexpected<Error> damaged(const std::string& what, std::uint64_t offset) {
  auto error = data_error("the shard is damaged: " + what + "; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

}  // namespace

Result<std::vector<std::uint32_t>> read_sample_table(const storage::Reader& reader, std::uint64_t samples,
                                                     std::uint64_t shard_bytes, bool ends_with_last_sample) {
  constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
  // before any memory is taken: the table is a part of the shard
  if (samples >= std::numeric_limits<std::uint32_t>::max() || (samples + 2) * kNumber > shard_bytes)
    return damaged("it has " + std::to_string(shard_bytes) + " bytes, and the index says " + std::to_string(samples) +
                       " samples, whose offsets alone are more",
                   0);
  std::vector<std::uint32_t> table(static_cast<std::size_t>(samples) + 2);
  const auto room = std::as_writable_bytes(std::span(table));
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, room));
  if (got < room.size()) return storage_error("the shard became shorter while it was read", 0);
  if (table.front() != samples)
    return damaged("it begins with the number of its samples, " + std::to_string(table.front()) +
                       ", where the index says " + std::to_string(samples),
                   0);
  table.erase(table.begin());
  std::uint64_t before = room.size();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] < before || table[i] > shard_bytes)
      return damaged("sample " + std::to_string(i) + " lies at byte " + std::to_string(table[i]) + ", which is " +
                         (table[i] < before ? "before byte " + std::to_string(before) + ", where what precedes it ends"
                                            : "behind its " + std::to_string(shard_bytes) + " bytes"),
                     (i + 1) * kNumber);
    before = table[i];
  }
  if (ends_with_last_sample && before != shard_bytes)
    return damaged("its last sample ends at byte " + std::to_string(before) + " of " + std::to_string(shard_bytes),
                   samples * kNumber + kNumber);
  return table;
}

// Under mutex_.
Result<const ColumnShard::Located*> ColumnShard::take(ShardFile file, const storage::Reader& reader,
                                                      bool is_checked) const {
  if (plan_.plain_bytes && file.version.bytes != *plan_.plain_bytes)
    return damaged("it has " + std::to_string(file.version.bytes) + " bytes, and the index says " +
                       std::to_string(*plan_.plain_bytes),
                   file.version.bytes);
  FEEDLINE_TRY(auto table, read_sample_table(reader, plan_.samples, file.version.bytes, plan_.ends_with_last_sample));
  located_ = std::make_unique<Located>(std::move(file), std::move(table), is_checked);
  ready_.store(located_.get(), std::memory_order_release);
  return located_.get();
}

Result<const ColumnShard::Located*> ColumnShard::located(const std::shared_ptr<const storage::Storage>& storage,
                                                         cache::Notes* notes, const ShardPartsStore* store) const {
  if (const Located* located = if_located()) return located;
  const std::lock_guard lock(mutex_);
  if (located_) return located_.get();
  FEEDLINE_TRY(ShardFile file, plan_.locate(storage, notes));
  std::shared_ptr<const storage::Reader> reader = std::move(file.reader);
  if (!reader) {
    FEEDLINE_TRY(reader, file.storage->open_version(file.path, storage::Access::kRead, file.version));
  }
  if (store == nullptr || file.path != plan_.stored_path) return take(std::move(file), *reader, true);
  if (copies_whole(*storage)) {
    FEEDLINE_TRY(reader, open_part(*storage, file.path, file.version));
  }
  const OpeningReader opening(storage, std::move(reader), file.version, {}, true);
  FEEDLINE_TRY(const Located* located, take(std::move(file), opening, true));
  FEEDLINE_CHECK_OK(opening.keep(*store));
  return located;
}

Result<bool> ColumnShard::locate_by_kept(const std::shared_ptr<const storage::Storage>& storage,
                                         const ShardPartsStore& store) const {
  if (!plan_.stored_path) return false;
  auto kept = store.at_hand(*storage, *plan_.stored_path);
  if (!kept) return false;
  const storage::Version version = kept->version();
  FEEDLINE_TRY(auto reader, open_part(*storage, *plan_.stored_path, version));
  const OpeningReader opening(storage, std::move(reader), version, std::move(kept), false);
  const std::lock_guard lock(mutex_);
  if (!take({*plan_.stored_path, *plan_.stored_path, storage, version}, opening, false)) return false;
  return true;
}

Result<std::span<const std::byte>> read_sample(const std::shared_ptr<const storage::Reader>& reader,
                                               ColumnShard::Place place, memory::Record& record) {
  // mapped or not: the pages of a view are brought in
  if (place.bytes > record.most_bytes) return memory::too_large(place.bytes, record.most_bytes);
  FEEDLINE_TRY(const auto view, reader->view(place.offset, static_cast<std::size_t>(place.bytes)));
  if (view) {
    record.pin = reader;
    return *view;
  }
  FEEDLINE_TRY(const auto room, record.storage.make_room(place.bytes, record.most_bytes));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(place.offset, room));
  if (got == room.size()) return std::span<const std::byte>(room);
  return storage_error(
      "the shard ends at byte " + std::to_string(place.offset + got) + ", inside a sample: it became shorter", 0);
}

}  // namespace feedline::format
