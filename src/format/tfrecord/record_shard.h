// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <span>
#include <string>
#include <utility>

#include "feedline/error.h"
#include "format/shard_reader.h"
#include "format/tfrecord/record_index.h"
#include "memory/record.h"

namespace feedline::format {

// Finds a shard's uncompressed records; decompresses gzip and zlib.
Result<ShardFile> locate_records(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                 cache::Notes* notes = nullptr);

// One TFRecord file of a dataset: its index, and its bytes, which are opened on the first read. Thread-safe.
class RecordShard : public ShardReader {
 public:
  using Scans = std::counting_semaphore<>;  // limits concurrent scans: see scans_at_once()
  // The options with which all shards of a dataset are opened.
  struct Opening {
    const RecordIndexStore& indexes;
    Scans& scans;
    bool asks = true;  // whether to query each shard's version even if the storage pins reads to a version
  };
  // Loads the stored index, or another program's matching index, or scans the file and stores an index. If the storage
  // pins reads to a version, the index is stored and `asks` is false, the shard's version is not queried: see
  // is_checked(). kData: the first damage.
  static Result<std::unique_ptr<RecordShard>> open(std::shared_ptr<const storage::Storage> storage,
                                                   const std::string& name, const Opening& opening);

  // Opens a file that was already scanned.
  static std::unique_ptr<RecordShard> of(ShardFile file, std::span<const std::uint64_t> ends);

  const RecordIndex& index() const { return index_; }
  // Deletes the stored index of a changed shard, so that the next open rebuilds it.
  void forget_index(const RecordIndexStore& indexes) const { indexes.forget(*file().storage, file().path); }
  // Returns the data of a record: mapped, with record.pin as the owner, or read into record.storage. kData: a length or
  // checksum is wrong, or the data exceeds record.most_bytes.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t number,
                                          memory::Record& record) const;
  // Returns the data in a record's bytes, including the frame, that were already read.
  Result<std::span<const std::byte>> data_of(std::uint64_t number, std::span<const std::byte> bytes) const;

 private:
  RecordShard(ShardFile file, RecordIndex index, std::string foreign, bool is_checked = true)
      : ShardReader(std::move(file), is_checked), index_(std::move(index)), foreign_(std::move(foreign)) {}

  const RecordIndex index_;
  const std::string foreign_;  // path of another program's index, if it is in use
};

}  // namespace feedline::format
