// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "format/columnar/arrow/arrow_chunk.h"
#include "format/columnar/arrow/arrow_messages.h"
#include "format/columnar/arrow/nested_value.h"
#include "format/columnar/block_cache.h"
#include "format/columnar/column_table.h"
#include "format/columnar/resident_blocks.h"

namespace feedline::format {

// An Arrow IPC file or stream. Uncompressed values are read directly. Buffers in compressed batches are decompressed
// and cached.
class ArrowTable final : public ColumnTable {
 public:
  static Result<std::unique_ptr<ColumnTable>> open(const ShardFile& file, const storage::Reader& reader,
                                                   std::shared_ptr<BlockCache> cache) {
    return open_part(file, {0, file.version.bytes}, reader, std::move(cache));
  }
  // Opens Arrow data embedded in a part of the shard.
  static Result<std::unique_ptr<ColumnTable>> open_part(const ShardFile& file, ByteRange part,
                                                        const storage::Reader& reader,
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
  void stop_keeping_numbers() const override { keeps_lists_.store(false, std::memory_order_relaxed); }
  void drop_blocks() const override { cache_->drop_all(this); }
  Blocks blocks(std::size_t slot) const override;
  void find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const override;
  std::uint64_t offset_of(std::uint64_t row) const override;

 private:
  // The dictionaries for dictionary-encoded columns, by message and column.
  using Values = std::map<std::pair<const ArrowMessage*, std::size_t>, std::shared_ptr<const ArrowChunk>>;
  struct Location {
    std::size_t batch;
    std::uint64_t row;  // in the batch
  };

  ArrowTable(ShardFile file, bool is_checked, ArrowMessages messages, std::shared_ptr<BlockCache> cache);
  // Returns the size of the columns that have a single number per row.
  std::uint64_t bytes_of_numbers(const std::vector<std::size_t>& columns) const;
  std::vector<ByteRange> ranges_of(const std::vector<std::size_t>& columns) const;
  Result<void> load(const storage::Reader& reader, const std::vector<std::size_t>& columns, const ArrowBatch& batch,
                    Values& values);
  // Returns the dictionary of a field of a column.
  static Result<std::shared_ptr<const ArrowMessage>> dictionary_of(const ArrowColumn& column, const ArrowField& field,
                                                                   const ArrowBatch& batch);
  Result<NestedDictionaries> dictionaries_of(const ArrowColumn& column, const ArrowBatch& batch) const;
  Result<std::shared_ptr<const ArrowChunk>> values_of(const storage::Reader& reader, std::size_t column,
                                                      const ArrowBatch& batch, Values& values) const;
  Location find_sample(std::uint64_t row) const;
  // Joins the numbers of all batches of each column whose chunks have only numbers.
  void join_numbers();
  // Returns the contents of the buffer of lists, or nullopt if the lists must be read one by one.
  Result<std::optional<std::span<const std::byte>>> lists(const storage::Reader& reader, std::size_t slot,
                                                          std::size_t batch, std::uint64_t requests,
                                                          std::shared_ptr<const void>& pin) const;
  // Returns the decompressed contents of a buffer; `requests` is the number of values that the caller reads.
  Result<std::span<const std::byte>> contents(const storage::Reader& reader, const ArrowBuffer& buffer,
                                              ArrowCodec codec, std::uint64_t rows, std::uint64_t requests,
                                              std::shared_ptr<const void>& pin) const;

  // A batch of a nested column.
  struct NestedBatch {
    ArrowArray array;
    ArrowCodec codec = ArrowCodec::kNone;
    bool has_bytes = false;
    NestedDictionaries dictionaries;
  };
  Result<TableCell> unpack_nested(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                                  std::shared_ptr<const void>& pin) const;

  ArrowMessages messages_;  // the messages of batches are released once they are loaded
  std::vector<ColumnType> types_;
  std::vector<std::uint64_t> ends_;               // number of rows up to the end of each batch
  std::vector<std::vector<ArrowChunk>> slots_;    // by slot, then by batch; empty chunks for nested columns
  std::vector<std::vector<NestedBatch>> nested_;  // by slot, then by batch; empty for other columns
  std::vector<std::vector<std::size_t>> paths_;   // by slot: ArrowColumn::path
  std::vector<std::vector<std::byte>> numbers_;   // by slot: the joined numbers, or empty
  // The uncompressed buffers of lists, by slot and batch, for numbers(). nullptr if they do not fit into memory; lists
  // are then read one by one.
  std::unique_ptr<ResidentBlocks> lists_;
  // Single numbers are in memory unless those of all tables of the dataset exceed the size of the cache.
  ArrowChunk::Held held_ = ArrowChunk::Held::kSingleNumbers;
  std::uint64_t claimed_ = 0;                    // of the cache's memory, for lists_
  mutable std::atomic<bool> keeps_lists_{true};  // otherwise these buffers are cached like compressed buffers
  std::shared_ptr<BlockCache> cache_;
};

}  // namespace feedline::format
