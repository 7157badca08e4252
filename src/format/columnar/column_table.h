// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/column.h"
#include "format/index/shard_reader.h"
#include "storage/reader.h"

namespace feedline::format {

struct FileRange {
  std::uint64_t offset = 0, bytes = 0;
};

// A row of a table, and the row of a batch to which its values are copied.
struct GatheredRow {
  std::uint64_t row = 0, to = 0;
};

// The numbers of consecutive rows of a column. Each row has one number, or a list of them without nulls.
struct NumberRun {
  static constexpr std::uint32_t kNull = 0xffffffff;
  std::uint64_t begin = 0, end = 0;                 // the rows of the table
  std::span<const std::byte> values = {};           // numbers of the column's dtype
  std::span<const std::uint32_t> value_of = {};     // index of each row's number, or kNull; empty: in order
  std::span<const std::byte> valid = {};            // a bit for each row that has a number; empty: all rows have one
  std::uint64_t elements = 1;                       // numbers of each row, unless `list_begins` is set
  std::span<const std::uint32_t> list_begins = {};  // the first number of each row, and the end of the last
};

// A shard whose rows are samples, stored by column. After opening a table, call choose() once. After this call, the
// table is immutable and thread-safe. Errors have a byte offset if possible. The caller adds the sample's location.
class ColumnTable : public ShardReader {
 public:
  using ShardReader::ShardReader;
  virtual ~ColumnTable() = default;

  virtual std::uint64_t rows() const = 0;
  virtual const std::vector<ColumnType>& columns() const = 0;
  // Returns the cumulative number of rows at the end of each row group or record batch.
  virtual std::vector<std::uint64_t> parts() const = 0;
  // Returns numbers that differ between tables with other samples, for the fingerprint.
  virtual std::vector<std::uint64_t> identity() const { return parts(); }

  // Reads the data that is needed to locate the values in these columns: offsets and validity, and also the values if
  // they are single numbers. Slot i then refers to columns[i]. Call this function once, from one thread. Requires: the
  // columns have values.
  virtual Result<void> choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) = 0;
  // Returns whether a row may lack this value.
  virtual bool may_have_nulls(std::size_t slot) const = 0;
  // Returns the position of a value. Requires: row < rows(). Fails with kData if the value does not match the type of
  // its column.
  virtual Result<CellLocation> location(std::uint64_t row, std::size_t slot) const = 0;
  // Returns a value whose location is kPacked. `pin` owns its memory.
  virtual Result<TableCell> unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                                   std::shared_ptr<const void>& pin) const = 0;
  // Returns the numbers of the first of these rows and of all later rows that are stored with it, or nullopt if the
  // value must be read by location(). `pin` owns the memory. Requires: `rows` is not empty and is ascending.
  virtual Result<std::optional<NumberRun>> numbers(const storage::Reader& /*reader*/,
                                                   std::span<const GatheredRow> /*rows*/, std::size_t /*slot*/,
                                                   std::shared_ptr<const void>& /*pin*/) const {
    return std::nullopt;
  }
  // The numbers of all rows will be copied: memory that numbers() has claimed for them is returned, and their blocks
  // need not stay in memory. claimed_bytes() returns the size of this memory.
  virtual std::uint64_t claimed_bytes() const { return 0; }
  virtual void stop_keeping_numbers() const {}
  // Removes the table's blocks from the cache.
  virtual void drop_blocks() const {}
  // Returns the decompressed sizes of a column's blocks that are decompressed as a whole whenever one of their values
  // is read. Returns zeros if choose() has failed.
  struct Blocks {
    std::uint64_t bytes = 0;  // of all blocks
    double bytes_of_row = 0;  // of the blocks that hold the value of a row, on average
  };
  virtual Blocks blocks(std::size_t /*slot*/) const { return {}; }
  // Adds the parts of the file that contain the blocks of a value and are not cached.
  virtual void find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const = 0;
  // Returns the file offset of the row's first slot, or of the block that contains it.
  virtual std::uint64_t offset_of(std::uint64_t row) const = 0;
};

}  // namespace feedline::format
