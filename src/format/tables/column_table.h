// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/shard_reader.h"
#include "format/tables/column.h"
#include "storage/reader.h"

namespace feedline::format {

struct FileRange {
  std::uint64_t offset = 0, bytes = 0;
};

// One shard whose rows are samples, stored by column. After it is opened, choose the columns to read once; after that
// it is immutable and thread-safe. Errors have a byte offset if possible; the caller adds the sample.
class ColumnTable : public ShardReader {
 public:
  using ShardReader::ShardReader;
  virtual ~ColumnTable() = default;

  virtual std::uint64_t rows() const = 0;
  virtual const std::vector<ColumnType>& columns() const = 0;
  // Cumulative number of rows of the parts that were written together; used for the fingerprint.
  virtual std::vector<std::uint64_t> parts() const = 0;

  // Reads the metadata that locates the values of these columns: offsets, validity, single numbers. After this, the
  // i-th column is slot i. Call once, from one thread. Requires: columns with values.
  virtual Result<void> choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) = 0;
  // Returns whether a row may lack this value.
  virtual bool may_have_nulls(std::size_t slot) const = 0;
  // Requires: row < rows(). kData: the value does not match its column's type.
  virtual Result<CellPlace> place(std::uint64_t row, std::size_t slot) const = 0;
  // Returns a value that is kPacked; `pin` owns its memory.
  virtual Result<TableCell> unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                                   std::shared_ptr<const void>& pin) const = 0;
  // Adds the parts of the file that contain the value's blocks, and returns whether these blocks are cached.
  virtual bool find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const = 0;
  // Returns the file offset of the row's first slot, or of the block that contains it.
  virtual std::uint64_t offset_of(std::uint64_t row) const = 0;
};

}  // namespace feedline::format
