// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/format.h"
#include "format/tfrecord/feature_reader.h"
#include "format/tfrecord/record_shard.h"

namespace feedline::format {

// One or several TFRecord files of tf.train.Example or SequenceExample records, plain or compressed. Sample numbers are
// consecutive across shards.
class TfrecordFormat final : public RecordFormat {
 public:
  // Requires: options.storage, and at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return "tfrecord"; }
  std::uint64_t size() const override { return ends_.back(); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  std::vector<std::uint64_t> shard_ends() const override { return ends_; }
  std::vector<StoredShard> stored_shards() const override;
  std::vector<UnopenedColumn> unopened() const override { return unopened_; }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  void notice_changes() const override;
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  using Shards = std::vector<std::unique_ptr<RecordShard>>;
  struct Place {
    const RecordShard* shard;
    std::size_t number;    // number of the shard
    std::uint64_t record;  // record within the shard
  };

  TfrecordFormat(std::string source, OpenOptions options, Shards shards);
  Result<void> take_samples(std::vector<FeatureChoice> fields);
  std::uint64_t compute_fingerprint() const;
  Place place_of(std::uint64_t index) const;
  Result<std::span<const std::byte>> fetch(const Place& place, memory::Record& record) const;
  Result<void> accept_data(std::span<const std::byte> data, memory::Record& record) const;
  // If the error means that a remote object was replaced, deletes its index.
  void doubt(const RecordShard& shard, const Error& error) const;
  // Adds the sample's position to `error`, unless the error has its own.
  std::unexpected<Error> at(std::uint64_t index, Error error) const;

  std::string source_;
  OpenOptions options_;
  Shards shards_;
  std::vector<std::string> stems_;  // prefixes of keys, one per shard
  mutable OpenShards open_shards_;
  std::optional<FeatureReader> reader_;
  std::vector<std::uint64_t> ends_;                // cumulative number of samples, per shard
  std::vector<std::vector<std::uint32_t>> whole_;  // per shard: the samples that lack no field; empty if all are used
  std::uint64_t left_out_ = 0;
  std::vector<FieldDescription> fields_;
  std::vector<UnopenedColumn> unopened_;
  std::vector<std::string> classes_;  // empty: records contain only the label's number
  std::uint64_t fingerprint_ = 0;
};

// Returns the prefixes of keys (record_keys.h): the shards' names without folders and extensions.
std::vector<std::string> stems_of(const std::vector<std::string>& shards);

}  // namespace feedline::format
