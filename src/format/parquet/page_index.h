// SPDX-License-Identifier: Apache-2.0
#pragma once

// The positions of the pages in a column chunk, and the rows that begin in each page.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/parquet/page_rows.h"
#include "format/parquet/parquet_metadata.h"
#include "storage/reader.h"

namespace feedline::format {

struct PagePlace {
  std::uint64_t offset = 0, bytes = 0;  // including its header
};

struct PageIndex {
  ParquetCodec codec = ParquetCodec::kNone;
  std::optional<PagePlace> dictionary = {};
  std::vector<PagePlace> pages = {};
  std::vector<std::uint64_t> ends = {};  // cumulative number of rows of the group, per page
  std::uint64_t values = 0;              // total of all pages, including nulls
  bool begin_with_rows = true;           // if false, a page may begin inside a row
};

// Finds the pages of a column's chunk in a row group of `rows` rows, in a file of `bytes` bytes. Uses the OffsetIndex
// if there is one, otherwise reads all page headers, and the pages of lists if the headers lack row counts. kData: the
// pages do not match the row group or the file.
Result<PageIndex> read_page_index(const storage::Reader& reader, std::uint64_t bytes, const ParquetColumn& column,
                                  const ParquetColumnChunk& chunk, std::uint64_t rows);

// Parses the pages' positions and first rows from an OffsetIndex; nullopt if it does not fit into its bytes.
struct IndexedPage {
  PagePlace place;
  std::uint64_t first_row = 0;
};
std::optional<std::vector<IndexedPage>> parse_offset_index(std::span<const std::byte> bytes);

}  // namespace feedline::format
