// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/page_index.h"

#include <algorithm>
#include <string>
#include <utility>

#include "format/columnar/parquet/compact_reader.h"

namespace feedline::format {
namespace {

std::unexpected<Error> damaged(std::uint64_t offset, const std::string& how) {
  auto error = data_error(how + ": the file is damaged; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

// The positions of a chunk's pages.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};

Result<Extent> extent_of(const ParquetColumnChunk& chunk, std::uint64_t bytes) {
  const bool has_dictionary = chunk.dictionary_offset > 0 && chunk.dictionary_offset < chunk.data_offset;
  const std::int64_t begin = has_dictionary ? chunk.dictionary_offset : chunk.data_offset;
  if (begin < 0 || chunk.packed_bytes < 0 || std::cmp_greater(begin, bytes) ||
      std::cmp_greater(chunk.packed_bytes, bytes - static_cast<std::uint64_t>(begin)))
    return damaged(0, "a column is outside the file");
  return Extent{static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(begin + chunk.packed_bytes)};
}

// Finds the pages by reading one header after another.
class HeaderWalk {
 public:
  HeaderWalk(const storage::Reader& reader, const ParquetColumn& column, const ParquetColumnChunk& chunk, Extent extent)
      : reader_(reader), column_(column), chunk_(chunk), extent_(extent) {}

  Result<PageIndex> walk(std::uint64_t rows) {
    PageIndex index;
    index.codec = static_cast<ParquetCodec>(chunk_.codec);
    index.values = static_cast<std::uint64_t>(chunk_.values);
    std::uint64_t values = 0, end = 0;
    for (std::uint64_t offset = extent_.begin; offset < extent_.end && values < index.values;) {
      FEEDLINE_TRY(const PageHeader header, header_at(offset));
      const PageLocation location{offset, header.bytes + header.packed_bytes};
      if (location.bytes > extent_.end - offset) return damaged(offset, "a page does not fit into its column");
      offset += location.bytes;
      if (header.kind == PageHeader::Kind::kDictionary) index.dictionary = location;
      if (!header.is_data()) continue;
      if (column_.most_repetition > 0 && header.kind == PageHeader::Kind::kData) index.begin_with_rows = false;
      values += header.values;
      FEEDLINE_TRY(const std::uint64_t begun, rows_of(header, location));
      index.pages.push_back(location);
      index.ends.push_back(end += begun);
    }
    if (values == index.values && end == rows) return index;
    return damaged(extent_.begin, "the pages of a column have " + std::to_string(end) + " rows of " +
                                      std::to_string(rows) + " in their row group");
  }

 private:
  // A header has fewer than 100 bytes, unless it contains minimum and maximum values.
  Result<PageHeader> header_at(std::uint64_t offset) {
    constexpr std::uint64_t kMost = 16 << 20;
    for (std::uint64_t bytes = reader_.worthwhile_bytes();; bytes *= 4) {
      window_.resize(std::min(bytes, extent_.end - offset));
      FEEDLINE_TRY(const std::size_t got, reader_.read_at(offset, window_));
      if (got < window_.size()) return damaged(offset, "the file ends inside a column");
      if (const auto header = parse_page_header(window_)) return *header;
      if (window_.size() == extent_.end - offset || bytes > kMost) return damaged(offset, "a page is missing");
    }
  }

  Result<std::uint64_t> rows_of(const PageHeader& header, const PageLocation& location) {
    if (column_.most_repetition == 0) return header.values;
    if (std::cmp_greater(header.values, chunk_.values))
      return damaged(location.offset, "a page has more values than its column");
    if (header.kind == PageHeader::Kind::kDataOfV2) return header.rows;
    std::vector<std::byte> packed(header.packed_bytes);
    FEEDLINE_TRY(const std::size_t got, reader_.read_at(location.offset + header.bytes, packed));
    if (got < packed.size()) return damaged(location.offset, "the file ends inside a column");
    auto rows = count_rows(column_, static_cast<ParquetCodec>(chunk_.codec), header, packed);
    if (!rows && !rows.error().where.offset) rows.error().where.offset = location.offset;
    return rows;
  }

  const storage::Reader& reader_;
  const ParquetColumn& column_;
  const ParquetColumnChunk& chunk_;
  const Extent extent_;
  std::vector<std::byte> window_;
};

Result<PageIndex> by_offset_index(const storage::Reader& reader, std::uint64_t bytes, const ParquetColumnChunk& chunk,
                                  Extent extent, std::uint64_t rows) {
  const auto at = static_cast<std::uint64_t>(chunk.index_offset), size = static_cast<std::uint64_t>(chunk.index_bytes);
  if (at > bytes || size > bytes - at) return damaged(0, "a page index is outside the file");
  std::vector<std::byte> stored(size);
  FEEDLINE_TRY(const std::size_t got, reader.read_at(at, stored));
  const auto found = got == size ? parse_offset_index(stored) : std::nullopt;
  if (!found || found->empty() != (rows == 0)) return damaged(at, "a page index extends beyond its declared size");
  PageIndex index;
  index.codec = static_cast<ParquetCodec>(chunk.codec);
  index.values = static_cast<std::uint64_t>(chunk.values);
  std::uint64_t begin = extent.begin, row = 0;
  for (std::size_t i = 0; i < found->size(); ++i) {
    const auto& [location, first_row] = (*found)[i];
    const std::uint64_t next = i + 1 < found->size() ? (*found)[i + 1].first_row : rows;
    if (location.offset < begin || location.offset > extent.end || location.bytes == 0 ||
        location.bytes > extent.end - location.offset || first_row != row || next < first_row)
      return damaged(at, "a page index does not match its column");
    if (i == 0 && location.offset > extent.begin)
      index.dictionary = PageLocation{extent.begin, location.offset - extent.begin};
    index.pages.push_back(location);
    index.ends.push_back(row = next);
    begin = location.offset + location.bytes;
  }
  return index;
}

}  // namespace

std::optional<std::vector<IndexedPage>> parse_offset_index(std::span<const std::byte> bytes) {
  std::vector<IndexedPage> pages;
  bool is_negative = false;
  CompactReader in(bytes);
  const auto location = [&] {
    IndexedPage page;
    in.fields([&](std::int64_t id, CompactType type) {
      if ((type != CompactType::kInt32 && type != CompactType::kInt64) || id < 1 || id > 3) return false;
      const std::int64_t value = in.integer();
      is_negative = is_negative || value < 0;
      (id == 1   ? page.location.offset
       : id == 2 ? page.location.bytes
                 : page.first_row) = static_cast<std::uint64_t>(value);
      return true;
    });
    pages.push_back(page);
  };
  in.fields([&](std::int64_t id, CompactType type) {
    if (id != 1 || type != CompactType::kList) return false;
    return in.items([&](CompactType) { return location(), true; }), true;
  });
  if (in.is_damaged() || is_negative) return {};
  return pages;
}

Result<PageLocation> find_chunk(std::uint64_t bytes, const ParquetColumn& column, const ParquetColumnChunk& chunk,
                                std::uint64_t rows) {
  if (chunk.is_encrypted) return config_error("the column '" + column.type.name + "' is encrypted");
  if (chunk.is_elsewhere)
    return config_error("the column '" + column.type.name +
                        "' is stored in another file, which this version does not read");
  if (std::cmp_not_equal(chunk.type, static_cast<int>(column.stored)) || chunk.codec < 0 || chunk.codec > 7 ||
      chunk.values < 0 || (column.most_repetition == 0 && std::cmp_not_equal(chunk.values, rows)))
    return damaged(0, "the column '" + column.type.name + "' differs between row groups");
  FEEDLINE_TRY(const Extent extent, extent_of(chunk, bytes));
  return PageLocation{extent.begin, extent.end - extent.begin};
}

Result<PageIndex> read_page_index(const storage::Reader& reader, std::uint64_t bytes, const ParquetColumn& column,
                                  const ParquetColumnChunk& chunk, std::uint64_t rows) {
  FEEDLINE_TRY(const PageLocation part, find_chunk(bytes, column, chunk, rows));
  const Extent extent{part.offset, part.offset + part.bytes};
  const bool has_index = chunk.index_offset > 0 && chunk.index_bytes > 0;
  auto index = has_index ? by_offset_index(reader, bytes, chunk, extent, rows)
                         : HeaderWalk(reader, column, chunk, extent).walk(rows);
  if (index) index->plain_bytes = plain_bytes_of(chunk);
  return index;
}

}  // namespace feedline::format
