// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "format/arrow/arrow_chunk.h"
#include "format/arrow/arrow_messages.h"
#include "format/tables/block_cache.h"
#include "format/tables/column_table.h"

namespace feedline::format {

// An Arrow IPC file or stream. Uncompressed values are read directly; buffers of compressed batches are decompressed
// and stored in `cache`.
class ArrowTable final : public ColumnTable {
 public:
  static Result<std::unique_ptr<ColumnTable>> open(const ShardFile& file, const storage::Reader& reader,
                                                   std::shared_ptr<BlockCache> cache) {
    return open_part(file, {0, file.version.bytes}, reader, std::move(cache));
  }
  // Opens a file embedded in the shard.
  static Result<std::unique_ptr<ColumnTable>> open_part(const ShardFile& file, ByteRange part,
                                                        const storage::Reader& reader,
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
  // The dictionaries of encoded columns, by message and column.
  using Values = std::map<std::pair<const ArrowMessage*, std::size_t>, std::shared_ptr<const ArrowChunk>>;
  struct Place {
    std::size_t batch;
    std::uint64_t row;  // in the batch
  };

  ArrowTable(ShardFile file, bool is_checked, ArrowMessages messages, std::shared_ptr<BlockCache> cache);
  std::vector<ByteRange> ranges_of(const std::vector<std::size_t>& columns) const;
  Result<void> load(const storage::Reader& reader, const std::vector<std::size_t>& columns, const ArrowBatch& batch,
                    Values& values);
  Result<std::shared_ptr<const ArrowChunk>> values_of(const storage::Reader& reader, std::size_t column,
                                                      const ArrowBatch& batch, Values& values) const;
  Place place_of(std::uint64_t row) const;

  ArrowMessages messages_;  // the messages of batches are released once they are loaded
  std::vector<ColumnType> types_;
  std::vector<std::uint64_t> ends_;             // number of rows up to the end of each batch
  std::vector<std::vector<ArrowChunk>> slots_;  // by slot, then by batch
  std::shared_ptr<BlockCache> cache_;
};

}  // namespace feedline::format
