// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "format/opening_reader.h"
#include "format/parquet/page_index.h"
#include "format/parquet/parquet_metadata.h"
#include "format/parquet/parquet_schema.h"
#include "format/parquet/value_places.h"
#include "format/tables/block_cache.h"
#include "format/tables/column_table.h"

namespace feedline::format {

// A Parquet file. To read a value, its page is decoded and stored in `cache`. In local files, a value that is stored
// uncompressed in a page that was read before is read individually.
class ParquetTable final : public ColumnTable {
 public:
  static Result<std::unique_ptr<ColumnTable>> open(const ShardFile& file, const storage::Reader& reader,
                                                   std::shared_ptr<BlockCache> cache);

  std::uint64_t rows() const override { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<ColumnType>& columns() const override { return types_; }
  std::vector<std::uint64_t> parts() const override { return ends_; }
  Result<void> choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) override;
  bool may_have_nulls(std::size_t slot) const override;
  Result<CellPlace> place(std::uint64_t row, std::size_t slot) const override;
  Result<TableCell> unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                           std::shared_ptr<const void>& pin) const override;
  bool find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const override;
  std::uint64_t offset_of(std::uint64_t row) const override;

 private:
  struct Slot {
    ParquetColumn column;
    bool may_have_nulls = false;
    std::vector<PageIndex> groups;
    // Values of all groups' pages that can be read individually; nullptr if no page has such values, or if the file is
    // remote, for which one request per page is better than one per value.
    std::unique_ptr<ValuePlaces> places = nullptr;
    std::vector<std::size_t> first_pages = {};  // index of each group's first page in `places`
  };
  struct Place {
    std::size_t group, page;
    std::uint64_t row;  // within the page
  };

  ParquetTable(ShardFile file, bool is_checked, ParquetMetadata metadata, std::vector<ParquetColumn> columns,
               std::shared_ptr<BlockCache> cache);
  void expect_plain_values(Slot& slot) const;
  const ValuePlaces::Page* known_places(const Slot& slot, const Place& at) const;
  std::vector<ByteRange> page_indexes(const std::vector<std::size_t>& columns) const;
  Place place_of(std::uint64_t row, const Slot& slot) const;
  Result<PageRows> read_rows(const storage::Reader& reader, const Slot& slot, std::size_t group, std::size_t page,
                             std::uint64_t& plain_bytes) const;
  Result<std::shared_ptr<const PageRows>> page_of(const storage::Reader& reader, const Slot& slot, std::size_t group,
                                                  std::size_t page) const;
  Result<std::shared_ptr<const PageValues>> dictionary_of(const storage::Reader& reader, const Slot& slot,
                                                          std::size_t group) const;
  Result<TableCell> list_at(const storage::Reader& reader, const Slot& slot, const Place& at,
                            std::shared_ptr<const PageRows> page, std::shared_ptr<const void>& pin) const;

  ParquetMetadata metadata_;
  std::vector<ParquetColumn> columns_;
  std::vector<ColumnType> types_;
  std::vector<std::uint64_t> ends_;  // cumulative number of rows, per row group
  std::vector<Slot> slots_;
  std::shared_ptr<BlockCache> cache_;
};

}  // namespace feedline::format
