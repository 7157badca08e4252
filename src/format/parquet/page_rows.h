// SPDX-License-Identifier: Apache-2.0
#pragma once

// A page, decompressed and decoded: the rows that begin in it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/parquet/page_header.h"
#include "format/parquet/page_values.h"
#include "format/parquet/parquet_schema.h"

namespace feedline::format {

// How a column's chunk is compressed: parquet.thrift's CompressionCodec.
enum class ParquetCodec : std::uint8_t { kNone, kSnappy, kGzip, kLzo, kBrotli, kLz4Framed, kZstd, kLz4 };

// Immutable once made.
struct PageRows {
  // Of a column without lists: per row the value, or kNull; none: the i-th row has the i-th value.
  static constexpr std::uint32_t kNull = 0xffffffff;
  std::vector<std::uint32_t> value_of = {};
  // Of one with lists: where each row's values begin, and where the last one's end; those before the first are of a row
  // that began in the page before. A list that is not there, and one with a null in it.
  std::vector<std::uint32_t> begins = {};
  std::vector<std::uint8_t> is_null = {}, has_null = {};
  bool begins_with_null = false;  // among those before the first row
  // For lists in lists: the levels of the entries, the begin of each row's entries, and the end of the last row's.
  struct Entry {
    std::uint8_t repetition = 0;  // the list in which a new element begins; 0: a row
    std::uint8_t present = 0;     // the number of lists that have an element there
  };
  std::vector<Entry> entries = {};
  std::vector<std::uint32_t> entry_begins = {};
  std::uint64_t rows = 0;
  PageValues values = {};

  std::uint64_t bytes() const;
};

// The extents of the array that a row's lists form. nullopt: inner lists differ in length, or the levels are damaged.
std::optional<Shape> shape_of(std::span<const PageRows::Entry> row, unsigned lists);

// A dictionary's values, of its page with header and packed bytes. kData: damaged, as its checksum says if it has one.
Result<PageValues> decode_dictionary(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                                     std::span<const std::byte> packed);
Result<PageRows> decode_page(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                             std::shared_ptr<const std::vector<std::byte>> packed,
                             const std::shared_ptr<const PageValues>& dictionary);
// How many rows begin in a page, by its levels alone. Requires: a column with lists.
Result<std::uint64_t> count_rows(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                                 std::span<const std::byte> packed);

}  // namespace feedline::format
