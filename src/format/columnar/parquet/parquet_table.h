// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "format/columnar/block_cache.h"
#include "format/columnar/column_table.h"
#include "format/columnar/parquet/nested_column.h"
#include "format/columnar/parquet/page_index.h"
#include "format/columnar/parquet/parquet_metadata.h"
#include "format/columnar/parquet/parquet_schema.h"
#include "format/columnar/parquet/value_locations.h"
#include "format/columnar/resident_blocks.h"
#include "format/index/opening_reader.h"

namespace feedline::format {

// A Parquet file. To read a value, the table decodes and caches the value's page. In local files, if a page has been
// read before and is not compressed, large values are read individually. In remote files without page indexes, the
// first read of a column's chunk fetches the chunk, because finding its pages would need a request for each page.
class ParquetTable final : public ColumnTable {
 public:
  static Result<std::unique_ptr<ColumnTable>> open(const ShardFile& file, const storage::Reader& reader,
                                                   std::shared_ptr<BlockCache> cache);

  std::uint64_t rows() const override { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<ColumnType>& columns() const override { return types_; }
  std::vector<std::uint64_t> parts() const override { return ends_; }
  Result<void> choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) override;
  bool may_have_nulls(std::size_t slot) const override;
  Result<CellLocation> location(std::uint64_t row, std::size_t slot) const override;
  Result<TableCell> unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                           std::shared_ptr<const void>& pin) const override;
  Result<std::optional<NumberRun>> numbers(const storage::Reader& reader, std::span<const GatheredRow> rows,
                                           std::size_t slot, std::shared_ptr<const void>& pin) const override;
  std::uint64_t claimed_bytes() const override { return claimed_; }
  void stop_keeping_numbers() const override { keeps_numbers_.store(false, std::memory_order_relaxed); }
  void drop_blocks() const override { cache_->drop_all(this); }
  Blocks blocks(std::size_t slot) const override;
  void find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const override;
  std::uint64_t offset_of(std::uint64_t row) const override;

 private:
  // A chunk whose pages are found when it is first read.
  struct LateChunk {
    ParquetColumnChunk chunk;
    PageLocation location;
    std::uint64_t rows = 0;
    ForkMutex mutex = {};               // locked while the chunk is read
    std::atomic<bool> is_known{false};  // whether its element of Slot::groups is set; until then guarded by mutex
  };
  struct Slot {
    ParquetColumn column;
    bool may_have_nulls = false;
    mutable std::vector<PageIndex> groups;
    std::vector<std::unique_ptr<LateChunk>> late = {};  // by group; nullptr if the pages are known
    // The values that can be read individually, for the pages of all groups. nullptr if there are no such values, or if
    // the file is remote, because one request per page is cheaper than one request per value.
    std::unique_ptr<ValueLocations> locations = nullptr;
    // For columns of single numbers: pages that need no lookup in the cache. is_resident: all pages stay in memory if
    // keeps_numbers_, otherwise only those in the block store.
    std::unique_ptr<ResidentBlocks> resident = nullptr;
    bool is_resident = false;
    std::vector<std::size_t> first_pages = {};  // index of each group's first page in `locations` and `resident`
    std::vector<Slot> members = {};             // of a nested column, which has no pages of its own
  };
  struct Location {
    std::size_t group, page;
    std::uint64_t row;  // within the page
  };

  ParquetTable(ShardFile file, bool is_checked, ParquetMetadata metadata, std::vector<ParquetColumn> columns,
               std::shared_ptr<BlockCache> cache);
  Result<Slot> make_slot(const storage::Reader& reader, const ParquetColumn& column);
  void expect_plain_values(Slot& slot) const;
  void expect_numbers(Slot& slot);
  Blocks blocks_of(const Slot& slot) const;
  void find_blocks_of(std::uint64_t row, const Slot& slot, std::vector<FileRange>& blocks) const;
  const ValueLocations::Page* known_locations(const Slot& slot, const Location& at) const;
  std::vector<ByteRange> page_indexes(const std::vector<std::size_t>& columns) const;
  Result<void> add_group(const storage::Reader& reader, const ParquetRowGroup& group, Slot& slot) const;
  const LateChunk* unknown_chunk(const Slot& slot, std::size_t group) const;
  Result<void> find_pages(const storage::Reader& reader, const Slot& slot, std::size_t group) const;
  std::size_t group_of(std::uint64_t row) const;
  Location find_sample(std::uint64_t row, const Slot& slot) const;
  Result<PageRows> read_rows(const storage::Reader& reader, const Slot& slot, std::size_t group, std::size_t page,
                             std::uint64_t& plain_bytes) const;
  Result<std::shared_ptr<const PageRows>> page_of(const storage::Reader& reader, const Slot& slot, std::size_t group,
                                                  std::size_t page, std::uint64_t requests = 1) const;
  Result<std::shared_ptr<const PageValues>> dictionary_of(const storage::Reader& reader, const Slot& slot,
                                                          std::size_t group) const;
  // Requires: the slot's column is nested.
  Result<TableCell> assemble(const storage::Reader& reader, const Slot& slot, std::uint64_t row,
                             std::shared_ptr<const void>& pin) const;
  Result<NestedLeaf> leaf_at(const storage::Reader& reader, const Slot& slot, std::uint64_t row) const;
  Result<TableCell> list_at(const storage::Reader& reader, const Slot& slot, const Location& at,
                            std::shared_ptr<const PageRows> page, std::shared_ptr<const void>& pin) const;

  ParquetMetadata metadata_;
  std::vector<ParquetColumn> columns_;
  std::vector<ColumnType> types_;
  std::vector<std::uint64_t> ends_;  // cumulative number of rows, per row group
  std::vector<Slot> slots_;
  std::shared_ptr<BlockCache> cache_;
  std::uint64_t claimed_ = 0;  // of the cache's memory, for resident pages
  mutable std::atomic<bool> keeps_numbers_{true};
};

}  // namespace feedline::format
