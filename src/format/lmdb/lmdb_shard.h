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

// The file of a database: itself, or data.mdb in a folder, told by `is_folder`.
std::string lmdb_file_of(const std::string& name, const storage::Storage& storage, bool is_folder);
// Likewise, where that is asked of the storage; behind a network the name says it, whose end is a slash.
Result<std::string> locate_lmdb(const std::string& name, const storage::Storage& storage);

// One LMDB file of a dataset: its index, and its bytes once somebody reads them. Takes no lock and makes no lock file.
// Thread-safe.
class LmdbShard : public ShardReader {
 public:
  // Takes the kept index, or walks the tree and keeps one. kData: the first damage.
  static Result<std::unique_ptr<LmdbShard>> open(std::shared_ptr<const storage::Storage> storage,
                                                 const std::string& name, const LmdbIndexStore& indexes);
  // Of a file that was walked already.
  static std::unique_ptr<LmdbShard> of(ShardFile file, const LmdbWalk& walk);

  const LmdbIndex& index() const { return index_; }
  // Reads an entry's frame into `room`, or finds it mapped, then kept by `pin`, and gives its value.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t entry,
                                          memory::ByteBuffer& room, std::uint64_t most_bytes,
                                          std::shared_ptr<const void>& pin) const;
  // The same of a frame that was read already.
  Result<std::span<const std::byte>> value_of(std::uint64_t entry, std::span<const std::byte> frame) const;
  // ShardReader::notice_change(), and whether the database has another transaction by now: of one that is written to by
  // a map of memory the file's time may be the same.
  void notice_change() const;

 private:
  LmdbShard(ShardFile file, LmdbIndex index) : ShardReader(std::move(file)), index_(std::move(index)) {}

  const LmdbIndex index_;
  mutable std::atomic<bool> is_written_to_{false};
};

// What a file is when it is opened. kStorage: it cannot be.
Result<ShardFile> locate_lmdb_file(std::shared_ptr<const storage::Storage> storage, const std::string& name);

}  // namespace feedline::format
