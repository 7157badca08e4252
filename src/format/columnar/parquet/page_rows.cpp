// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/page_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/crc.h"
#include "format/columnar/parquet/runs.h"
#include "format/compression/compression.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;

constexpr std::uint64_t kMostValues = 1 << 26;                // limits the values of a page, because runs of levels can
                                                              // encode many values in few bytes
constexpr std::uint64_t kMostPlain = std::uint64_t{1} << 31;  // sizes are signed 32-bit integers
constexpr std::uint64_t kMostOfAByte = 1 << 16;               // above the compression ratio of every codec

std::unexpected<Error> damaged(const std::string& how) { return data_error("a page is damaged: " + how, "format"); }

Result<void> check(const PageHeader& header, Bytes packed) {
  if (packed.size() != header.packed_bytes) return damaged("the page is truncated");
  if (header.values > kMostValues)
    return config_error("a page has " + std::to_string(header.values) + " values, more than this version reads");
  if (!header.crc) return {};
  if (static_cast<std::uint32_t>(base::crc(base::CrcKind::k32, 0, packed)) == *header.crc) return {};
  return damaged("the page's checksum is wrong; copy or download the file again");
}

// Decompresses a page.
Result<Buffer> unpacked(ParquetCodec codec, Bytes in, std::uint64_t bytes) {
  constexpr struct {
    ParquetCodec codec;
    Compression kind;
  } kKinds[] = {{ParquetCodec::kSnappy, Compression::kSnappy},
                {ParquetCodec::kGzip, Compression::kGzip},
                {ParquetCodec::kBrotli, Compression::kBrotli},
                {ParquetCodec::kZstd, Compression::kZstd},
                {ParquetCodec::kLz4, Compression::kLz4}};
  const auto kind = std::ranges::find(kKinds, codec, [](const auto& one) { return one.codec; });
  if (kind == std::end(kKinds))
    return config_error(codec == ParquetCodec::kLzo || codec == ParquetCodec::kLz4Framed
                            ? std::string("a column is compressed with ") +
                                  (codec == ParquetCodec::kLzo ? "LZO"
                                                               : "LZ4 in "
                                                                 "Hadoop's frames") +
                                  ", which this version does not read"
                            : "a column has a compression that this version does not support");
  if (bytes > kMostPlain || bytes > (in.size() + 1) * kMostOfAByte)
    return damaged(std::to_string(bytes) + " bytes is not a plausible size");
  Buffer out(bytes);
  if (bytes == 0 && in.empty()) return out;
  auto done = decompress_exactly(kind->kind, in, out);
  if (!done) return damaged(done.error().what);
  return out;
}

// The levels and values in a page, as views of its bytes.
struct Parts {
  Bytes repetition, definition, values;
  std::shared_ptr<const void> owner;
};

bool take_level(Bytes& in, Bytes& level) {
  std::uint32_t bytes = 0;
  if (in.size() < sizeof bytes) return false;
  std::memcpy(&bytes, in.data(), sizeof bytes);
  if (in.size() - sizeof bytes < bytes) return false;
  level = in.subspan(sizeof bytes, bytes);
  in = in.subspan(sizeof bytes + bytes);
  return true;
}

Result<Parts> split_v2(ParquetCodec codec, const PageHeader& header, Bytes packed, std::shared_ptr<const void> owner) {
  const std::uint64_t levels = header.repetition_bytes + header.definition_bytes;
  if (levels > packed.size() || levels > header.plain_bytes) return damaged("the levels do not fit into the page");
  Parts parts{packed.first(header.repetition_bytes), packed.subspan(header.repetition_bytes, header.definition_bytes),
              packed.subspan(levels), std::move(owner)};
  if (!header.is_compressed || codec == ParquetCodec::kNone) return parts;
  FEEDLINE_TRY(Buffer plain, unpacked(codec, parts.values, header.plain_bytes - levels));
  auto held = std::make_shared<const Buffer>(std::move(plain));
  parts.values = *held;
  parts.owner = std::move(held);  // The levels still refer to the packed bytes, so they must be decoded before these
                                  // are released.
  return parts;
}

Result<Parts> split(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header, Bytes packed,
                    std::shared_ptr<const void> owner) {
  if (header.kind == PageHeader::Kind::kDataOfV2) return split_v2(codec, header, packed, std::move(owner));
  Parts parts;
  parts.values = packed;
  parts.owner = std::move(owner);
  if (codec != ParquetCodec::kNone) {
    FEEDLINE_TRY(Buffer plain, unpacked(codec, packed, header.plain_bytes));
    auto held = std::make_shared<const Buffer>(std::move(plain));
    parts.values = *held;
    parts.owner = std::move(held);
  }
  const auto kRuns = static_cast<std::int64_t>(ParquetEncoding::kRuns);
  if ((column.most_repetition > 0 && header.repetition_encoding != kRuns) ||
      (column.most_definition > 0 && header.definition_encoding != kRuns))
    return config_error("levels use the obsolete BIT_PACKED encoding, which this version does not read");
  if ((column.most_repetition > 0 && !take_level(parts.values, parts.repetition)) ||
      (column.most_definition > 0 && !take_level(parts.values, parts.definition)))
    return damaged("the levels do not fit into the page");
  return parts;
}

using Levels = std::vector<std::uint32_t>;

// Requires: most > 0.
Result<Levels> levels_of(Bytes bytes, unsigned most, std::uint64_t count) {
  auto levels = take_runs(bytes, bits_of(most), count);
  if (!levels || std::ranges::any_of(*levels, [&](std::uint32_t level) { return level > most; }))
    return damaged("the levels do not fit into the page");
  return std::move(*levels);
}

// Assigns values to rows without lists, and returns the number of non-null values.
std::uint64_t place_values(const ParquetColumn& column, const Levels& definitions, PageRows& rows) {
  const auto is_present = [&](std::uint32_t level) { return level == column.most_definition; };
  if (std::ranges::all_of(definitions, is_present)) return definitions.size();
  std::uint32_t next = 0;
  rows.value_of.reserve(definitions.size());
  for (const std::uint32_t level : definitions) rows.value_of.push_back(is_present(level) ? next++ : PageRows::kNull);
  return next;
}

// Assigns values to the rows of a list column, in which repetition level 0 begins a row.
std::uint64_t place_lists(const ParquetColumn& column, const Levels& definitions, const Levels& repetitions,
                          PageRows& rows) {
  std::uint32_t next = 0;
  const std::vector<unsigned>& lists = column.list_definitions;
  const bool is_nested = lists.size() > 1 || column.is_member;
  for (std::size_t i = 0; i < repetitions.size(); ++i) {
    const std::uint32_t level = definitions[i];
    std::size_t present = 0;
    while (present < lists.size() && level >= lists[present]) ++present;
    // one definition level below its elements, the list exists but is empty
    const bool is_there = present == lists.size() ? level == column.most_definition : level + 1 >= lists[present];
    const bool is_lacking = present > 0 && !is_there;
    if (repetitions[i] == 0) {
      rows.begins.push_back(next);
      rows.is_null.push_back(present == 0 && !is_there);
      rows.has_null.push_back(0);
      if (is_nested) rows.entry_begins.push_back(static_cast<std::uint32_t>(i));
    }
    if (is_nested)
      rows.entries.push_back({static_cast<std::uint8_t>(repetitions[i]), static_cast<std::uint8_t>(present),
                              static_cast<std::uint8_t>(level)});
    if (is_lacking && rows.has_null.empty()) rows.begins_with_null = true;
    if (is_lacking && !rows.has_null.empty()) rows.has_null.back() = 1;
    next += level == column.most_definition;
    rows.has_nulls_in_lists = rows.has_nulls_in_lists || is_lacking || (present == 0 && !is_there);
  }
  rows.rows = rows.begins.size();
  rows.begins.push_back(next);
  if (is_nested) rows.entry_begins.push_back(static_cast<std::uint32_t>(repetitions.size()));
  return next;
}

}  // namespace

std::optional<Shape> shape_of(std::span<const PageRows::Entry> row, unsigned lists) {
  std::array<std::optional<std::int64_t>, Shape::kMaxDims> sizes{},
      open{};  // sizes of all lists at each depth, and of the current list
  const auto close = [&](std::size_t from) {
    for (std::size_t depth = from; depth < lists; ++depth) {
      if (open[depth] && sizes[depth] && *open[depth] != *sizes[depth]) return false;
      if (open[depth]) sizes[depth] = open[depth];
      open[depth].reset();
    }
    return true;
  };
  for (const PageRows::Entry& entry : row) {
    const std::size_t repetition = entry.repetition;
    if (repetition > lists || entry.present < repetition || !close(repetition)) return {};
    if (repetition > 0) {
      if (!open[repetition - 1]) return {};
      ++*open[repetition - 1];
    }
    // An element that is present begins a list at the next level.
    for (std::size_t depth = repetition; depth < lists && depth <= entry.present; ++depth)
      open[depth] = depth < entry.present ? 1 : 0;
  }
  if (!close(0)) return {};
  Shape shape;
  for (std::size_t depth = lists; depth-- > 0;) shape = shape.with_front(sizes[depth].value_or(0));
  return shape;
}

std::uint64_t PageRows::bytes() const {
  return entries.capacity() * sizeof(Entry) + entry_begins.capacity() * sizeof(std::uint32_t) +
         value_of.capacity() * sizeof(std::uint32_t) + begins.capacity() * sizeof(std::uint32_t) + is_null.capacity() +
         has_null.capacity() + values.bytes();
}

Result<PageValues> decode_dictionary(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                                     Bytes packed) {
  FEEDLINE_CHECK_OK(check(header, packed));
  Buffer plain(packed.begin(), packed.end());
  if (codec != ParquetCodec::kNone) {
    FEEDLINE_TRY(plain, unpacked(codec, packed, header.plain_bytes));
  }
  const auto kPlain = static_cast<std::int64_t>(ParquetEncoding::kPlain),
             kOfDictionary = static_cast<std::int64_t>(ParquetEncoding::kPlainDictionary);
  if (header.encoding != kPlain && header.encoding != kOfDictionary)
    return config_error("a dictionary has the encoding " + std::to_string(header.encoding) +
                        ", which this version does not read");
  auto held = std::make_shared<const Buffer>(std::move(plain));
  return decode_values(column, kPlain, *held, header.values, nullptr, held);
}

Result<PageRows> decode_page(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                             std::shared_ptr<const Buffer> packed,
                             const std::shared_ptr<const PageValues>& dictionary) {
  FEEDLINE_CHECK_OK(check(header, *packed));
  if (!header.is_data()) return damaged("the page is not a data page");
  FEEDLINE_TRY(Parts parts, split(column, codec, header, *packed, packed));
  PageRows rows;
  rows.rows = header.values;
  std::uint64_t there = header.values;
  Levels definitions;
  if (column.most_definition > 0) {
    FEEDLINE_TRY(definitions, levels_of(parts.definition, column.most_definition, header.values));
  }
  if (column.most_repetition > 0) {
    FEEDLINE_TRY(const Levels repetitions, levels_of(parts.repetition, column.most_repetition, header.values));
    there = place_lists(column, definitions, repetitions, rows);
  } else if (column.most_definition > 0) {
    there = place_values(column, definitions, rows);
  }
  FEEDLINE_TRY(rows.values, decode_values(column, header.encoding, parts.values, there, dictionary, parts.owner));
  return rows;
}

Result<std::uint64_t> count_rows(const ParquetColumn& column, ParquetCodec codec, const PageHeader& header,
                                 Bytes packed) {
  FEEDLINE_CHECK_OK(check(header, packed));
  FEEDLINE_TRY(const Parts parts, split(column, codec, header, packed, nullptr));
  FEEDLINE_TRY(const Levels repetitions, levels_of(parts.repetition, column.most_repetition, header.values));
  return static_cast<std::uint64_t>(std::ranges::count(repetitions, 0U));
}

}  // namespace feedline::format
