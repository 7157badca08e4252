// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the pages of a column's chunk are, and which rows begin in each.

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
  std::uint64_t offset = 0, bytes = 0;  // with its header
};

struct PageIndex {
  ParquetCodec codec = ParquetCodec::kNone;
  std::optional<PagePlace> dictionary = {};
  std::vector<PagePlace> pages = {};
  std::vector<std::uint64_t> ends = {};  // rows of the group up to and with each page
  std::uint64_t values = 0;              // of all pages, with those that are null
  bool begin_with_rows = true;           // false: a page may begin inside of a row
};

// The chunk of `column` in a row group of `rows` rows, in a file of `bytes` bytes: by the OffsetIndex where the file
// has one, else from header to header; of lists whose pages do not say their rows by reading these. kData: it does not
// fit.
Result<PageIndex> read_page_index(const storage::Reader& reader, std::uint64_t bytes, const ParquetColumn& column,
                                  const ParquetColumnChunk& chunk, std::uint64_t rows);

// The places that an OffsetIndex has, with the first row of each; nullopt: it does not fit into its bytes.
struct IndexedPage {
  PagePlace place;
  std::uint64_t first_row = 0;
};
std::optional<std::vector<IndexedPage>> parse_offset_index(std::span<const std::byte> bytes);

}  // namespace feedline::format
