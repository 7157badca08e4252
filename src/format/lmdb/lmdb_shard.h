// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "feedline/error.h"
#include "format/lmdb/lmdb_index.h"
#include "format/shard_reader.h"
#include "memory/record.h"

namespace feedline::format {

// Returns the file of a database: the path itself, or data.mdb if `is_folder`.
std::string lmdb_file_of(const std::string& name, const storage::Storage& storage, bool is_folder);
// Queries the storage whether the path is a folder; remote folders are recognised by a trailing slash.
Result<std::string> locate_lmdb(const std::string& name, const storage::Storage& storage);

// One LMDB file of a dataset: its index, and its bytes, which are opened on the first read. Neither locks the file nor
// creates a lock file. Thread-safe.
class LmdbShard : public ShardReader {
 public:
  // Loads the stored index, or walks the tree and stores the index. kData: the first damage.
  static Result<std::unique_ptr<LmdbShard>> open(std::shared_ptr<const storage::Storage> storage,
                                                 const std::string& name, const LmdbIndexStore& indexes);
  // Opens a file whose tree was already walked.
  static std::unique_ptr<LmdbShard> of(ShardFile file, const LmdbWalk& walk);

  const LmdbIndex& index() const { return index_; }
  // Reads an entry's frame into `room`, or maps it and sets `pin` to its owner, and returns the value.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t entry,
                                          memory::ByteBuffer& room, std::uint64_t most_bytes,
                                          std::shared_ptr<const void>& pin) const;
  // Returns the value in a frame that was already read.
  Result<std::span<const std::byte>> value_of(std::uint64_t entry, std::span<const std::byte> frame) const;
  // Like ShardReader::notice_change(), but also compares the database's transaction, because a write through a memory
  // map may not change the file's time.
  void notice_change() const;

 private:
  LmdbShard(ShardFile file, LmdbIndex index) : ShardReader(std::move(file)), index_(std::move(index)) {}

  const LmdbIndex index_;
  mutable std::atomic<bool> is_written_to_{false};
};

// Returns the version of the file. kStorage: it cannot be opened.
Result<ShardFile> locate_lmdb_file(std::shared_ptr<const storage::Storage> storage, const std::string& name);

}  // namespace feedline::format
