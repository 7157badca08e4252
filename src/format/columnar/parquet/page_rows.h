// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows that begin in a page, after the page has been decompressed and decoded.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/parquet/page_header.h"
#include "format/columnar/parquet/page_values.h"
#include "format/columnar/parquet/parquet_schema.h"

namespace feedline::format {

// The compression of a column chunk, with the values of CompressionCodec in parquet.thrift.
enum class ParquetCodec : std::uint8_t { kNone, kSnappy, kGzip, kLzo, kBrotli, kLz4Framed, kZstd, kLz4 };

// Immutable after construction.
struct PageRows {
  // For columns without lists: the index of each row's value, or kNull. If empty, row i has value i.
  static constexpr std::uint32_t kNull = 0xffffffff;
  std::vector<std::uint32_t> value_of = {};
  // For columns with lists: the first value of each row, and the end of the last row. Values before the first row
  // belong to a row that began in the previous page. `is_null` is set if the list is null, and `has_null` if it
  // contains a null.
  std::vector<std::uint32_t> begins = {};
  std::vector<std::uint8_t> is_null = {}, has_null = {};
  bool begins_with_null = false;    // whether there is a null before the first row
  bool has_nulls_in_lists = false;  // whether a list is null or contains a null
  // For nested lists and members of nested columns: the levels of the entries, the first entry of each row, and the end
  // of the last row.
  struct Entry {
    std::uint8_t repetition = 0;  // depth of the list that gets a new element; 0 for a new row
    std::uint8_t present = 0;     // number of nested lists that have an element here
    std::uint8_t definition = 0;  // level: how much of the value's path is present
  };
  std::vector<Entry> entries = {};
  std::vector<std::uint32_t> entry_begins = {};
  std::uint64_t rows = 0;
  PageValues values = {};

  std::uint64_t bytes() const;
};

// Returns the shape of the array that the lists in a row form, or nullopt if inner lists have different lengths or the
// levels are damaged.
std::optional<Shape> shape_of(std::span<const PageRows::Entry> row, unsigned lists);

// Decodes the values in a dictionary page, given its header and compressed bytes. Fails with kData if the page is
// damaged, for example if its checksum is wrong.
Result<PageValues> decode_dictionary(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                                     std::span<const std::byte> packed);
Result<PageRows> decode_page(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                             std::shared_ptr<const std::vector<std::byte>> packed,
                             const std::shared_ptr<const PageValues>& dictionary);
// Counts the rows that begin in a page; decodes only its levels. Requires: the column has lists.
Result<std::uint64_t> count_rows(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                                 std::span<const std::byte> packed);

}  // namespace feedline::format
