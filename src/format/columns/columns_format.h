// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/columns/column_reader.h"
#include "format/columns/column_shard.h"
#include "format/columns/planned_dataset.h"
#include "format/format.h"

namespace feedline::format {

// Samples of columns, numbered through the shards.
class ColumnsFormat final : public RecordFormat {
 public:
  // Requires: options.storage, and shards of schemas that there are. kConfig: no samples, or the fields cannot be had.
  static Result<std::shared_ptr<const Format>> open(const std::string& source, PlannedDataset dataset,
                                                    const OpenOptions& options);
  // Looks at all shards, their checksums and all samples.
  static Result<Inspection> inspect(const std::string& source, PlannedDataset dataset, const OpenOptions& options);

  std::string_view name() const override { return format_; }
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
  std::vector<UnopenedColumn> unopened() const override;
  std::vector<std::uint64_t> shard_ends() const override { return ends_; }
  Where where(std::uint64_t index) const override;
  void notice_changes() const override;
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  struct Place {
    const ColumnShard* shard;
    std::size_t number;    // of the shard
    std::uint64_t sample;  // in the shard
  };

  ColumnsFormat(std::string source, PlannedDataset dataset, OpenOptions options, std::vector<ColumnReader> readers);
  Result<void> locate_all() const;
  // Where an error says that the object behind a network is another one by now: its table is not to be trusted again.
  void doubt(const ColumnShard& shard, const Error& error) const;
  std::uint64_t compute_fingerprint() const;
  Place place_of(std::uint64_t index) const;
  Where known_place(std::uint64_t index) const;  // without looking for its shard
  Result<const ColumnShard::Located*> locate(const Place& place) const;
  Result<std::span<const std::byte>> fetch(const Place& place, memory::Record& record) const;
  const ColumnReader& reader_of(const Place& place) const { return readers_[place.shard->plan().schema]; }
  Result<std::span<const std::byte>> plain(const ColumnReader& reader, std::span<const std::byte> stored,
                                           memory::Record& record) const;
  Result<void> accept_sample(const ColumnReader& reader, std::span<const std::byte> stored,
                             memory::Record& record) const;
  // `error` with the sample's place, as far as it does not name one itself.
  std::unexpected<Error> at(std::uint64_t index, Error error) const;

  const std::string source_;
  const std::string format_;
  const OpenOptions options_;
  std::vector<std::unique_ptr<ColumnShard>> shards_;
  std::vector<std::string> stems_;  // of keys, one for each shard
  mutable OpenShards open_shards_;
  const std::vector<ColumnReader> readers_;  // one for each schema
  std::vector<std::uint64_t> ends_;          // samples of the shards up to and with this one
  std::vector<FieldDescription> fields_;
  const std::vector<std::string> classes_;
  std::uint64_t fingerprint_ = 0;
};

// What keys begin with: the shards' names without folders, dots as "_"; with their number where two are the same.
std::vector<std::string> key_stems_of(const std::vector<PlannedShard>& shards);

}  // namespace feedline::format
