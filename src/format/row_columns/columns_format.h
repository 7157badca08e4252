// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/row_columns/column_reader.h"
#include "format/row_columns/column_shard.h"
#include "format/row_columns/planned_dataset.h"
#include "format/shards/sharded_format.h"

namespace feedline::format {

// A dataset of shards whose samples have typed columns.
class ColumnsFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage is set, and the schema indexes of shards are valid. Fails with kConfig if there are no
  // samples or a field does not exist.
  static Result<std::shared_ptr<const Format>> open(const std::string& source, PlannedDataset dataset,
                                                    const OpenOptions& options);
  // Inspects all samples, and verifies the checksums of all shards.
  static Result<Inspection> inspect(const std::string& source, PlannedDataset dataset, const OpenOptions& options);

  std::string_view name() const override { return format_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override;
  Where where(std::uint64_t index) const override;
  void notice_changes() const override;
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override;

 private:
  struct Location {
    const ColumnShard* shard;
    std::size_t number;    // index of the shard
    std::uint64_t sample;  // index in the shard
  };

  ColumnsFormat(std::string source, PlannedDataset dataset, OpenOptions options, std::vector<ColumnReader> readers);
  Result<void> locate_all() const;
  void forget(std::size_t shard) const override;
  std::uint64_t compute_fingerprint() const;
  Location find_sample(std::uint64_t index) const;
  Where location_of(std::uint64_t index) const override;  // without locating its shard
  Result<const ColumnShard::Located*> locate(const Location& location) const;
  Result<std::span<const std::byte>> fetch(const Location& location, memory::Record& record) const;
  Result<void> read_column(const Location& location, std::size_t field, memory::Record& record) const;
  const ColumnReader& reader_of(const Location& location) const { return readers_[location.shard->plan().schema]; }
  Result<std::span<const std::byte>> plain(const ColumnReader& reader, std::span<const std::byte> stored,
                                           memory::Record& record) const;
  Result<void> accept_sample(const ColumnReader& reader, std::span<const std::byte> stored,
                             memory::Record& record) const;
  std::unexpected<Error> at(std::uint64_t index, Error error) const;

  const std::string format_;
  std::vector<std::unique_ptr<ColumnShard>> shards_;
  std::vector<std::string> stems_;           // key prefixes, one per shard
  const std::vector<ColumnReader> readers_;  // one per schema
};

// Returns the key prefixes of shards: their names without folders, with dots replaced by "_". The shard's index is
// added to duplicate names.
std::vector<std::string> key_stems_of(const std::vector<PlannedShard>& shards);

}  // namespace feedline::format
