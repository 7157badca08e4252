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

// A Parquet file. A value is read by the page that it is in, which is decoded and kept in `cache`; on this machine one
// that lies plain in a page that was read before, by itself.
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
    // Of all groups' pages; nullptr: none of them may lie plain, or the file is far, where one request for a page is
    // better than one for each of its values.
    std::unique_ptr<ValuePlaces> places = nullptr;
    std::vector<std::size_t> first_pages = {};  // of each group, among those
  };
  struct Place {
    std::size_t group, page;
    std::uint64_t row;  // in the page
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
  std::vector<std::uint64_t> ends_;  // rows up to and with each row group
  std::vector<Slot> slots_;
  std::shared_ptr<BlockCache> cache_;
};

}  // namespace feedline::format
