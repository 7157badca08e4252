// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "feedline/error.h"
#include "format/index/shard_reader.h"
#include "format/lmdb/lmdb_index.h"
#include "memory/record.h"

namespace feedline::format {

// Returns the file of a database: the path itself, or data.mdb if `is_folder`.
std::string lmdb_file_of(const std::string& name, const storage::Storage& storage, bool is_folder);
// Returns the file of a database. Checks whether the path is a folder; remote folders are recognised by a trailing
// slash.
Result<std::string> locate_lmdb(const std::string& name, const storage::Storage& storage);

// One LMDB file of a dataset and its index. The file is opened on the first read. Does not lock the file or create a
// lock file. Thread-safe.
class LmdbShard : public ShardReader {
 public:
  // Loads the stored index, or reads the tree and stores the index. Fails with kData if the tree is damaged.
  static Result<std::unique_ptr<LmdbShard>> open(std::shared_ptr<const storage::Storage> storage,
                                                 const std::string& name, const LmdbIndexStore& indexes);
  // Opens a file whose tree has already been read.
  static std::unique_ptr<LmdbShard> of(ShardFile file, const LmdbWalk& walk);

  const LmdbIndex& index() const { return index_; }
  // Returns the value of an entry. Reads the value's frame into `room`, or maps the frame and sets `pin` to the owner
  // of the memory.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t entry,
                                          memory::ByteBuffer& room, std::uint64_t most_bytes,
                                          std::shared_ptr<const void>& pin) const;
  // Returns the value in a frame that has already been read.
  Result<std::span<const std::byte>> value_of(std::uint64_t entry, std::span<const std::byte> frame) const;
  // Like ShardReader::notice_change(), but also compares the database's transaction, because a write through a memory
  // map may not change the file's time.
  void notice_change() const;

 private:
  LmdbShard(ShardFile file, LmdbIndex index) : ShardReader(std::move(file)), index_(std::move(index)) {}

  const LmdbIndex index_;
  mutable std::atomic<bool> is_written_to_{false};
};

// Opens the file and determines its version. Fails with kStorage if the file cannot be opened.
Result<ShardFile> locate_lmdb_file(std::shared_ptr<const storage::Storage> storage, const std::string& name);

}  // namespace feedline::format
