// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/columnar/block_cache.h"
#include "format/columnar/column_choice.h"
#include "format/columnar/column_table.h"
#include "format/columnar/row_copy.h"
#include "format/shards/sharded_format.h"

namespace feedline::format {

// A file type whose rows are samples.
struct TableKind {
  std::string_view name;  // name of the format: "arrow"
  std::string_view what;  // name in messages: "Arrow file"
  // Opens a file and reads its metadata, but not its values. Fails with kData if the file is damaged.
  std::function<Result<std::unique_ptr<ColumnTable>>(const ShardFile& file, const storage::Reader& reader)> open;
  // The name of ColumnTable::parts() if shuffle="shards" permutes them; empty: it permutes files.
  std::string_view parts = {};
  std::shared_ptr<BlockCache> cache = nullptr;  // of the tables' blocks
};

// Returns the cost of blocks in these tables, some of which may be nullptr. `slots` is the number of chosen columns.
BlockCosts block_costs_of(const BlockCache& cache, std::span<const std::unique_ptr<ColumnTable>> tables,
                          std::size_t slots);

// Opens the shard `name`. Errors name the shard.
Result<std::unique_ptr<ColumnTable>> open_table(const TableKind& kind, std::shared_ptr<const storage::Storage> storage,
                                                const std::string& name);

// A format whose samples are the rows of one or several tables, numbered consecutively.
class TablesFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage is set, and there is at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(TableKind kind, const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return kind_.name; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  std::uint64_t grain() const override { return grain_; }
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const override;
  Result<std::uint64_t> gather(std::span<const SampleRow> samples,
                               std::span<const ArrayView> first_rows) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return 2 * choices_.size(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override;
  std::vector<FieldRemark> remarks() const override { return remarks_of(choices_); }
  std::string summary() const override;
  ShuffleBlocks shuffle_blocks() const override;
  BlockCosts block_costs() const override;
  BlockCounts block_counts() const override;
  std::uint64_t block_bytes() const override;
  void limit_blocks(std::uint64_t bytes) const override;
  void notice_changes() const override;
  Where where(std::uint64_t index) const override;

 private:
  using Tables = std::vector<std::unique_ptr<ColumnTable>>;
  struct Location {
    const ColumnTable* table;
    std::size_t number;  // number of the shard
    std::uint64_t row;   // row within the shard
  };

  TablesFormat(TableKind kind, std::string source, OpenOptions options, Tables tables,
               std::vector<PickedColumn> choices);
  Result<void> take_samples();
  Result<std::vector<std::uint64_t>> whole_rows(const ColumnTable& table, std::vector<bool>& lacking) const;
  std::uint64_t compute_fingerprint() const;
  Location find_sample(std::uint64_t index) const;
  std::optional<std::size_t> only_slot(std::size_t field) const;
  std::string key_of(const Location& location) const;
  Result<void> read_slot(const Location& location, const std::shared_ptr<const storage::Reader>& reader,
                         std::size_t slot, memory::Record& record, memory::Record::Field& field) const;
  Result<void> read_row(const Location& location, memory::Record& record) const;
  // The parts of the file that a row's values need, and the blocks that are not cached. ranges_of() returns nullopt if
  // read() will fail.
  struct Ranges {
    std::vector<FileRange> stored, blocks;
  };
  std::optional<Ranges> ranges_of(const Location& location) const;
  RowCopy* row_copy(std::span<const ArrayView> first_rows) const;
  std::unique_ptr<RowCopy> make_row_copy(std::span<const ArrayView> first_rows) const;
  Result<void> fill_rows(std::size_t part, std::uint64_t first, std::uint64_t end,
                         std::span<const FieldRows> fields) const;
  Result<std::uint64_t> gather_by_column(std::span<const SampleRow> samples,
                                         std::span<const ArrayView> first_rows) const;
  void forget(std::size_t shard) const override;
  std::unexpected<Error> at(std::uint64_t index, Error error) const;

  TableKind kind_;
  Tables tables_;
  std::vector<std::string> stems_;  // prefixes of keys, one per shard
  std::vector<PickedColumn> choices_;
  std::vector<std::uint64_t> part_ends_;  // cumulative number of samples up to the end of each part of each table
  std::uint64_t grain_ = 1;
  mutable std::atomic<std::uint64_t> gathered_{0};   // number of rows
  mutable std::atomic<std::uint64_t> delivered_{0};  // bytes of all values that were read
  // The copy of all samples' numbers, made by the first gather() if it fits into memory.
  mutable ForkMutex copy_mutex_;
  mutable std::unique_ptr<RowCopy> copy_owner_;  // guarded by copy_mutex_
  mutable std::atomic<RowCopy*> copy_{nullptr};
  mutable std::atomic<bool> has_tried_copy_{false}, has_dropped_blocks_{false}, is_changed_{false};
  mutable std::atomic<bool> has_returned_claims_{false};  // of the tables, to the cache
  std::vector<std::vector<std::uint64_t>> whole_;  // per shard: the rows that lack no field; empty if all rows are used
};

// Returns the key prefixes of shards: their names without folders and extensions. The shard's number is appended to
// duplicate names.
std::vector<std::string> table_stems(const std::vector<std::string>& shards);

}  // namespace feedline::format
