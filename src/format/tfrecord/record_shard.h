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

// Where a shard's plain records are: compressed by gzip or zlib they are no records.
Result<ShardFile> locate_records(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                 cache::Notes* notes = nullptr);

// One TFRecord file of a dataset: its index, and its bytes once somebody reads them. Thread-safe.
class RecordShard : public ShardReader {
 public:
  using Scans = std::counting_semaphore<>;  // those that may be made: see scans_at_once()
  // How all shards of a dataset are opened.
  struct Opening {
    const RecordIndexStore& indexes;
    Scans& scans;
    bool asks = true;  // for the version of each, whatever its storage
  };
  // Takes our kept index, or another program's that fits, or scans the file and keeps one. Of a storage that holds
  // reads to a version nobody is asked for the shard's where our index is kept and Opening says so: see is_checked().
  // kData: the first damage.
  static Result<std::unique_ptr<RecordShard>> open(std::shared_ptr<const storage::Storage> storage,
                                                   const std::string& name, const Opening& opening);

  // Of a file that was scanned already.
  static std::unique_ptr<RecordShard> of(ShardFile file, std::span<const std::uint64_t> ends);

  const RecordIndex& index() const { return index_; }
  // It is another one by now: the next who opens it makes an index anew.
  void forget_index(const RecordIndexStore& indexes) const { indexes.forget(*file().storage, file().path); }
  // The data of a record: mapped, then kept by record.pin, or read into record.storage. kData: a length or a checksum
  // is wrong, or it is over record.most_bytes.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t number,
                                          memory::Record& record) const;
  // The same of its bytes with their frame, that were read already.
  Result<std::span<const std::byte>> data_of(std::uint64_t number, std::span<const std::byte> bytes) const;

 private:
  RecordShard(ShardFile file, RecordIndex index, std::string foreign, bool is_checked = true)
      : ShardReader(std::move(file), is_checked), index_(std::move(index)), foreign_(std::move(foreign)) {}

  const RecordIndex index_;
  const std::string foreign_;  // path of another program's index, where that is the one in use
};

}  // namespace feedline::format
