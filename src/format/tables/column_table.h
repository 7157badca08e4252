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

// One shard whose rows are samples, column by column. Opened, then told once which columns are read; after that
// immutable, and any thread may read. Errors carry a byte offset where there is one; the sample is the caller's to say.
class ColumnTable : public ShardReader {
 public:
  using ShardReader::ShardReader;
  virtual ~ColumnTable() = default;

  virtual std::uint64_t rows() const = 0;
  virtual const std::vector<ColumnType>& columns() const = 0;
  // Rows up to and with each part that was written together: what a fingerprint is made of.
  virtual std::vector<std::uint64_t> parts() const = 0;

  // Reads what says where the values of these columns are: offsets, which values there are, single numbers. From then
  // on the i-th of them is the i-th slot. Requires: columns that hold something; called once, by one thread.
  virtual Result<void> choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) = 0;
  // Can a row lack a value there?
  virtual bool may_have_nulls(std::size_t slot) const = 0;
  // Requires: row < rows(). kData: the value cannot be what its column says.
  virtual Result<CellPlace> place(std::uint64_t row, std::size_t slot) const = 0;
  // A value that is kPacked, which stays as long as `pin`.
  virtual Result<TableCell> unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                                   std::shared_ptr<const void>& pin) const = 0;
  // Adds the parts of the file that it is unpacked from. Are they at hand by now?
  virtual bool find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const = 0;
  // Where in the file the row's first slot, or what it is packed in, begins.
  virtual std::uint64_t offset_of(std::uint64_t row) const = 0;
};

}  // namespace feedline::format
