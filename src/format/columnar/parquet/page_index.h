// SPDX-License-Identifier: Apache-2.0
#pragma once

// The positions of the pages in a column chunk, and the rows that begin in each page.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/parquet/page_rows.h"
#include "format/columnar/parquet/parquet_metadata.h"
#include "storage/reader.h"

namespace feedline::format {

struct PageLocation {
  std::uint64_t offset = 0, bytes = 0;  // including its header
};

struct PageIndex {
  ParquetCodec codec = ParquetCodec::kNone;
  std::optional<PageLocation> dictionary = {};
  std::vector<PageLocation> pages = {};
  std::vector<std::uint64_t> ends = {};  // cumulative number of rows of the group, per page
  std::uint64_t values = 0;              // total of all pages, including nulls
  std::uint64_t plain_bytes = 0;         // of all pages and the dictionary, decompressed; only for estimates
  bool begin_with_rows = true;           // if false, a page may begin inside a row
};

// Finds the pages of a column's chunk in a row group of `rows` rows, in a file of `bytes` bytes. Uses the OffsetIndex
// if there is one. Otherwise reads all page headers, and also the pages if the column contains lists and the headers
// have no row counts. Fails with kData if the pages do not match the row group or the file.
Result<PageIndex> read_page_index(const storage::Reader& reader, std::uint64_t bytes, const ParquetColumn& column,
                                  const ParquetColumnChunk& chunk, std::uint64_t rows);

// Returns the part of the file that contains the pages of a column's chunk. Fails like read_page_index().
Result<PageLocation> find_chunk(std::uint64_t bytes, const ParquetColumn& column, const ParquetColumnChunk& chunk,
                                std::uint64_t rows);

// A page in an OffsetIndex, with its position and first row. parse_offset_index() returns nullopt if the index extends
// past the end of its bytes.
struct IndexedPage {
  PageLocation location;
  std::uint64_t first_row = 0;
};
std::optional<std::vector<IndexedPage>> parse_offset_index(std::span<const std::byte> bytes);

}  // namespace feedline::format
