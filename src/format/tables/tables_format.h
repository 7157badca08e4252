// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/sharded_format.h"
#include "format/tables/column_choice.h"
#include "format/tables/column_table.h"

namespace feedline::format {

// A file type whose rows are samples.
struct TableKind {
  std::string_view name;  // name of the format: "arrow"
  std::string_view what;  // name in messages: "Arrow file"
  // Opens a file and reads its metadata, but no values. kData: damaged.
  std::function<Result<std::unique_ptr<ColumnTable>>(const ShardFile& file, const storage::Reader& reader)> open;
  std::function<std::string()> summary = {};  // additional lines for explain()
};

// Opens the shard at `name` and adds its location to errors.
Result<std::unique_ptr<ColumnTable>> open_table(const TableKind& kind, std::shared_ptr<const storage::Storage> storage,
                                                const std::string& name);

// Samples that are rows of one or several tables, with consecutive numbers.
class TablesFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage, and at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(TableKind kind, const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return kind_.name; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return 2 * choices_.size(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override;
  std::vector<FieldRemark> remarks() const override { return remarks_of(choices_); }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;

 private:
  using Tables = std::vector<std::unique_ptr<ColumnTable>>;
  struct Place {
    const ColumnTable* table;
    std::size_t number;  // number of the shard
    std::uint64_t row;   // row within the shard
  };

  TablesFormat(TableKind kind, std::string source, OpenOptions options, Tables tables,
               std::vector<PickedColumn> choices);
  Result<void> take_samples();
  Result<std::vector<std::uint64_t>> whole_rows(const ColumnTable& table, std::vector<bool>& lacking) const;
  std::uint64_t compute_fingerprint() const;
  Place place_of(std::uint64_t index) const;
  std::string key_of(const Place& place) const;
  Result<void> read_row(const Place& place, memory::Record& record) const;
  // Returns the reads that a row's slots need: parts of the file, and blocks; nullopt if read() will report an error.
  struct Ranges {
    std::vector<FileRange> stored, blocks;
    bool are_blocks_at_hand = true;
  };
  std::optional<Ranges> ranges_of(const Place& place) const;
  void forget(std::size_t shard) const override;
  std::unexpected<Error> at(std::uint64_t index, Error error) const;

  TableKind kind_;
  Tables tables_;
  std::vector<std::string> stems_;  // prefixes of keys, one per shard
  std::vector<PickedColumn> choices_;
  std::vector<std::vector<std::uint64_t>> whole_;  // per shard: the rows that lack no field; empty if all rows are used
};

// Returns the prefixes of keys: the shards' names without folders and extensions, with the shard's number if names
// repeat.
std::vector<std::string> table_stems(const std::vector<std::string>& shards);

}  // namespace feedline::format
