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
#include "format/index/shard_reader.h"
#include "format/tfrecord/record_index.h"
#include "memory/record.h"

namespace feedline::format {

// Locates the uncompressed file of a shard. Decompresses gzip and zlib first if necessary.
Result<ShardFile> locate_records(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                 cache::Notes* notes = nullptr);

// One TFRecord file of a dataset and its index. The file is opened on the first read. Thread-safe.
class RecordShard : public ShardReader {
 public:
  using Scans = std::counting_semaphore<>;  // limits concurrent scans: see scans_at_once()
  // The options with which all shards of a dataset are opened.
  struct Opening {
    const RecordIndexStore& indexes;
    Scans& scans;
    bool checks_version = true;  // whether to query each shard's version even if the storage pins reads to a version
  };
  // Loads the stored index or a matching index of another program, or scans the file and stores an index. The version
  // of the shard is not queried (see is_checked()) if the storage supports reads of a specific version, there is a
  // stored index, and `checks_version` is false. Fails with kData if the file is damaged.
  static Result<std::unique_ptr<RecordShard>> open(std::shared_ptr<const storage::Storage> storage,
                                                   const std::string& name, const Opening& opening);

  // Opens a file that has already been scanned.
  static std::unique_ptr<RecordShard> of(ShardFile file, std::span<const std::uint64_t> ends);

  const RecordIndex& index() const { return index_; }
  // Deletes the stored index of a changed shard, so that it is rebuilt when the shard is next opened.
  void forget_index(const RecordIndexStore& indexes) const { indexes.forget(*file().storage, file().path); }
  // Returns the data of a record, which is mapped and owned by record.pin, or read into record.storage. Fails with
  // kData if a length or checksum is wrong, or if the data exceeds record.most_bytes.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t number,
                                          memory::Record& record) const;
  // Returns the data of a record whose bytes, including the frame, have already been read.
  Result<std::span<const std::byte>> data_of(std::uint64_t number, std::span<const std::byte> bytes) const;

 private:
  RecordShard(ShardFile file, RecordIndex index, std::string foreign, bool is_checked = true)
      : ShardReader(std::move(file), is_checked), index_(std::move(index)), foreign_(std::move(foreign)) {}

  const RecordIndex index_;
  const std::string foreign_;  // path of another program's index, if it is in use
};

}  // namespace feedline::format
