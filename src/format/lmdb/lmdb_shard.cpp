// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_shard.h"

#include "format/shards/finding.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

std::unexpected<Error> written_to(const std::string& name) {
  return storage_error("'" + name + "' is being written to: open the dataset again after the write", 0);
}

// Returns whether the newest transaction in the file is the same as in the index.
Result<bool> has_transaction(const storage::Reader& reader, std::uint64_t bytes, std::uint64_t transaction) {
  FEEDLINE_TRY(const LmdbMeta meta, read_lmdb_meta(reader, bytes));
  return meta.transaction == transaction;
}

Result<LmdbIndex> make_index(const ShardFile& file, const storage::Reader& reader, const LmdbIndexStore& indexes) {
  Findings findings;
  FEEDLINE_TRY(const LmdbWalk walk,
               walk_lmdb(reader, file.version.bytes, file.name, file.storage->is_remote(), findings));
  FEEDLINE_TRY(const auto stat, reader.version());
  FEEDLINE_CHECK_OK(storage::check_version(file.name, file.version, stat));
  FEEDLINE_TRY(const bool same, has_transaction(reader, file.version.bytes, walk.meta.transaction));
  if (!same) return written_to(file.name);
  if (const Finding* finding = findings.first_error()) return std::unexpected(to_error(*finding));
  LmdbIndex index = LmdbIndex::build(walk, file.version);
  // Indexes larger than the file are not stored. Tiny values can cause such an index; reading the tree is then as fast
  // as reading the index.
  if (index.file_bytes().size() < file.version.bytes) FEEDLINE_CHECK_OK(indexes.save(*file.storage, file.path, index));
  return index;
}

}  // namespace

std::string lmdb_file_of(const std::string& name, const storage::Storage& storage, bool is_folder) {
  if (!is_folder) return name;
  const std::size_t end = name.find_last_not_of('/');
  return storage.below(name.substr(0, end + 1), "data.mdb");
}

Result<std::string> locate_lmdb(const std::string& name, const storage::Storage& storage) {
  if (storage.is_remote()) return lmdb_file_of(name, storage, name.ends_with('/'));
  FEEDLINE_TRY(const bool is_folder, storage.is_directory(name));
  return lmdb_file_of(name, storage, is_folder);
}

Result<ShardFile> locate_lmdb_file(std::shared_ptr<const storage::Storage> storage, const std::string& name) {
  FEEDLINE_TRY(const std::string path, locate_lmdb(name, *storage));
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(path, storage::Access::kRead));
  FEEDLINE_TRY(const auto version, reader->version());
  return ShardFile{path, path, std::move(storage), version, std::move(reader)};
}

Result<std::unique_ptr<LmdbShard>> LmdbShard::open(std::shared_ptr<const storage::Storage> storage,
                                                   const std::string& name, const LmdbIndexStore& indexes) {
  FEEDLINE_TRY(ShardFile file, locate_lmdb_file(std::move(storage), name));
  const std::shared_ptr<const storage::Reader> reader = std::exchange(file.reader, nullptr);
  auto index = indexes.load(*file.storage, file.path, file.version);
  if (index && !file.storage->is_remote()) {
    FEEDLINE_TRY(const bool same, has_transaction(*reader, file.version.bytes, index->transaction()));
    if (!same) index.reset();
  }
  if (index) return std::unique_ptr<LmdbShard>(new LmdbShard(std::move(file), std::move(*index)));
  FEEDLINE_TRY(LmdbIndex made, make_index(file, *reader, indexes));
  return std::unique_ptr<LmdbShard>(new LmdbShard(std::move(file), std::move(made)));
}

std::unique_ptr<LmdbShard> LmdbShard::of(ShardFile file, const LmdbWalk& walk) {
  LmdbIndex index = LmdbIndex::build(walk, file.version);
  file.reader.reset();
  return std::unique_ptr<LmdbShard>(new LmdbShard(std::move(file), std::move(index)));
}

Result<Bytes> LmdbShard::value_of(std::uint64_t entry, Bytes frame) const {
  if (is_written_to_.load(std::memory_order_relaxed)) return written_to(name());
  auto value = index_.value_in(frame, entry);
  if (value) return *value;
  auto error = data_error("the value of '" + index_.key_text(entry) + "' " + value.error() +
                              "; the file is damaged, or was written to while it was copied",
                          "format");
  error.error().where.offset = index_.location(entry).offset;
  return error;
}

Result<Bytes> LmdbShard::read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t entry,
                              memory::ByteBuffer& room, std::uint64_t most_bytes,
                              std::shared_ptr<const void>& pin) const {
  const LmdbIndex::Location location = index_.location(entry);
  if (location.bytes > most_bytes) return memory::too_large(location.bytes, most_bytes);
  FEEDLINE_TRY(const auto view, reader->view(location.offset, location.bytes));
  if (view) {
    pin = reader;
    return value_of(entry, *view);
  }
  FEEDLINE_TRY(const auto bytes, room.make_room(location.bytes, most_bytes));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(location.offset, bytes));
  if (got < bytes.size())
    return storage_error(
        "the file ends at byte " + std::to_string(location.offset + got) + ", inside a value: the file became shorter",
        0);
  return value_of(entry, bytes);
}

void LmdbShard::notice_change() const {
  ShardReader::notice_change();
  const storage::Reader* open = lasting_reader();
  if (open == nullptr || file().storage->is_remote()) return;
  const auto same = has_transaction(*open, file().version.bytes, index_.transaction());
  if (!same || !*same) is_written_to_.store(true, std::memory_order_relaxed);
}

}  // namespace feedline::format
