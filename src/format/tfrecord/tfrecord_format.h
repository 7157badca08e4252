// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/shards/sharded_format.h"
#include "format/tfrecord/feature_reader.h"
#include "format/tfrecord/record_shard.h"

namespace feedline::format {

// One or several TFRecord files of tf.train.Example or SequenceExample records, plain or compressed. Samples are
// numbered consecutively across shards.
class TfrecordFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage is set, and there is at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return "tfrecord"; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override { return unopened_; }
  Where where(std::uint64_t index) const override;

 private:
  using Shards = std::vector<std::unique_ptr<RecordShard>>;
  struct Location {
    const RecordShard* shard;
    std::size_t number;    // number of the shard
    std::uint64_t record;  // record within the shard
  };

  TfrecordFormat(std::string source, OpenOptions options, Shards shards);
  Result<void> take_samples(std::vector<FeatureChoice> fields);
  std::uint64_t compute_fingerprint() const;
  Location find_sample(std::uint64_t index) const;
  Result<std::span<const std::byte>> fetch(const Location& location, memory::Record& record) const;
  Result<void> accept_data(std::span<const std::byte> data, memory::Record& record) const;
  void forget(std::size_t shard) const override;

  Shards shards_;
  std::vector<std::string> stems_;  // prefixes of keys, one per shard
  std::optional<FeatureReader> reader_;
  std::vector<std::vector<std::uint32_t>> whole_;  // per shard: the samples that lack no field; empty if all are used
  std::vector<UnopenedColumn> unopened_;
};

// Returns the key prefixes of shards (record_keys.h): their names without folders and extensions.
std::vector<std::string> stems_of(const std::vector<std::string>& shards);

}  // namespace feedline::format
