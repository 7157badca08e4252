// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/column_shard.h"

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "format/index/opening_reader.h"
#include "storage/version.h"

namespace feedline::format {
namespace {

std::unexpected<Error> damaged(const std::string& what, std::uint64_t offset) {
  auto error = data_error("the shard is damaged: " + what + "; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

// Adds the name of the file to the error, since a shard may consist of two files.
std::unexpected<Error> in_file(const PlannedFile& file, Error error) {
  if (error.where.shard.empty()) error.where.shard = file.name;
  return std::unexpected(std::move(error));
}

Result<void> check_bytes(const PlannedFile& file, std::uint64_t bytes) {
  if (!file.plain_bytes || bytes == *file.plain_bytes) return {};
  auto error = damaged(
      "the file has " + std::to_string(bytes) + " bytes, but the index specifies " + std::to_string(*file.plain_bytes),
      bytes);
  return in_file(file, std::move(error).error());
}

}  // namespace

Result<std::vector<std::uint32_t>> read_sample_table(const storage::Reader& reader, const SampleTable& known) {
  constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
  const auto& [samples, file_bytes, shard_bytes, first_sample, ends_with_last_sample] = known;
  // check before allocating memory: the table is part of the file
  if (samples >= std::numeric_limits<std::uint32_t>::max() || (samples + 2) * kNumber > file_bytes)
    return damaged("the file has " + std::to_string(file_bytes) + " bytes, but the index specifies " +
                       std::to_string(samples) + " samples, whose offsets need more bytes",
                   0);
  std::vector<std::uint32_t> table(static_cast<std::size_t>(samples) + 2);
  const auto room = std::as_writable_bytes(std::span(table));
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, room));
  if (got < room.size()) return storage_error("the shard was truncated while it was read", 0);
  if (table.front() != samples)
    return damaged("the file begins with a sample count of " + std::to_string(table.front()) +
                       ", but the index specifies " + std::to_string(samples),
                   0);
  table.erase(table.begin());
  if (first_sample && table.front() != *first_sample)
    return damaged("the first sample is at byte " + std::to_string(table.front()) +
                       ", but the index places it at byte " + std::to_string(*first_sample),
                   kNumber);
  std::uint64_t before = first_sample.value_or(room.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] < before || table[i] > shard_bytes)
      return damaged(
          "sample " + std::to_string(i) + " is at byte " + std::to_string(table[i]) + ", which is " +
              (table[i] < before ? "before byte " + std::to_string(before) + ", the end of the preceding data"
                                 : "past the end of the shard's " + std::to_string(shard_bytes) + " bytes"),
          (i + 1) * kNumber);
    before = table[i];
  }
  if (ends_with_last_sample && before != shard_bytes)
    return damaged("the last sample ends at byte " + std::to_string(before) + " of " + std::to_string(shard_bytes),
                   samples * kNumber + kNumber);
  return table;
}

// Requires: mutex_ is locked.
Result<const ColumnShard::Located*> ColumnShard::take(ShardFile file, const storage::Reader& reader,
                                                      std::uint64_t table_bytes, bool is_checked) const {
  FEEDLINE_CHECK_OK(check_bytes(plan_, file.version.bytes));
  SampleTable known{plan_.samples, table_bytes, file.version.bytes, {}, plan_.ends_with_last_sample};
  if (plan_.table) {
    FEEDLINE_CHECK_OK(check_bytes(*plan_.table, table_bytes));
    known.first_sample = plan_.table->first_sample;
  }
  auto table = read_sample_table(reader, known);
  if (!table) return in_file(planned_table(), std::move(table).error());
  located_ = std::make_unique<Located>(std::move(file), std::move(*table), is_checked);
  ready_.store(located_.get(), std::memory_order_release);
  return located_.get();
}

Result<const ColumnShard::Located*> ColumnShard::located(const std::shared_ptr<const storage::Storage>& storage,
                                                         cache::Notes* notes, const ShardPartsStore* store) const {
  if (const Located* located = if_located()) return located;
  const std::lock_guard lock(mutex_);
  if (located_) return located_.get();
  FEEDLINE_TRY(ShardFile file, plan_.locate(storage, notes));
  std::optional<ShardFile> table_file;
  if (plan_.table) {
    FEEDLINE_TRY(table_file, plan_.table->locate(storage, notes));
    file.reader = nullptr;  // reading samples opens the shard
  }
  ShardFile& of_table = table_file ? *table_file : file;
  std::shared_ptr<const storage::Reader> reader = std::move(of_table.reader);
  if (!reader) {
    FEEDLINE_TRY(reader, of_table.storage->open_version(of_table.path, storage::Access::kRead, of_table.version));
  }
  const storage::Version version = of_table.version;
  const bool is_kept =
      store != nullptr && file.path == plan_.stored_path && of_table.path == planned_table().stored_path;
  if (!is_kept) return take(std::move(file), *reader, version.bytes, true);
  if (copies_whole(*storage)) {
    FEEDLINE_TRY(reader, open_part(*storage, of_table.path, version));
  }
  const storage::Version of_shard = file.version;
  const OpeningReader opening(storage, std::move(reader), version, {}, true);
  FEEDLINE_TRY(const Located* located, take(std::move(file), opening, version.bytes, true));
  FEEDLINE_CHECK_OK(opening.keep(*store, of_shard.bytes));
  if (plan_.table) FEEDLINE_CHECK_OK(store->save(*storage, *plan_.stored_path, ShardParts::build({}, of_shard)));
  return located;
}

Result<bool> ColumnShard::locate_by_persisted(const std::shared_ptr<const storage::Storage>& storage,
                                              const ShardPartsStore& store) const {
  if (!plan_.stored_path || !planned_table().stored_path) return false;
  auto stored = store.at_hand(*storage, *plan_.stored_path);
  if (!stored) return false;
  const storage::Version of_shard = stored->version();
  if (plan_.table) stored = store.at_hand(*storage, *plan_.table->stored_path);
  if (!stored) return false;
  const storage::Version version = stored->version();
  FEEDLINE_TRY(auto reader, open_part(*storage, *planned_table().stored_path, version));
  const OpeningReader opening(storage, std::move(reader), version, std::move(stored), false);
  const std::lock_guard lock(mutex_);
  ShardFile file{*plan_.stored_path, *plan_.stored_path, storage, of_shard};
  return take(std::move(file), opening, version.bytes, false).has_value();
}

Result<std::span<const std::byte>> read_sample(const std::shared_ptr<const storage::Reader>& reader,
                                               ColumnShard::Location location, memory::Record& record) {
  // also limits views, whose pages are loaded when they are read
  if (location.bytes > record.most_bytes) return memory::too_large(location.bytes, record.most_bytes);
  FEEDLINE_TRY(const auto view, reader->view(location.offset, static_cast<std::size_t>(location.bytes)));
  if (view) {
    record.pin = reader;
    return *view;
  }
  FEEDLINE_TRY(const auto room, record.storage.make_room(location.bytes, record.most_bytes));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(location.offset, room));
  if (got == room.size()) return std::span<const std::byte>(room);
  return storage_error(
      "the shard ends at byte " + std::to_string(location.offset + got) + ", inside a sample: it has been truncated",
      0);
}

}  // namespace feedline::format
