// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/image_columns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "decode/image_formats.h"
#include "format/columnar/fetched_reader.h"
#include "format/index/opening_reader.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Tables = std::vector<std::unique_ptr<ColumnTable>>;

constexpr std::uint64_t kLookedAt = 8;  // number of rows to search, because the first ones may have no value

// The note of a shard has an entry for each column that was examined: "+NAME" if it is an image, or "-NAME" if not,
// followed by a zero byte.
constexpr char kImage = '+', kNoImage = '-';

void add_to_note(std::string& note, const std::string& column, bool is_image) {
  note += (is_image ? kImage : kNoImage) + column + '\0';
}

std::optional<bool> find_in_note(std::string_view note, std::string_view column) {
  while (!note.empty()) {
    const std::string_view entry = note.substr(0, note.find('\0'));
    if (!entry.empty() && entry.substr(1) == column) return entry.front() == kImage;
    note.remove_prefix(std::min(entry.size() + 1, note.size()));
  }
  return {};
}

// Reads a value. For remote files, fetches a page and the dictionary before it with one request.
Result<TableCell> unpack_by_one_read(const ColumnTable& table, const storage::Reader& reader, std::uint64_t row,
                                     std::size_t slot, std::shared_ptr<const void>& pin) {
  constexpr std::uint64_t kGap = std::uint64_t{16} << 10U;  // reading fewer bytes than this costs less than another
                                                            // request
  std::vector<FileRange> blocks;
  table.find_blocks(row, slot, blocks);
  if (blocks.size() < 2) return table.unpack(reader, row, slot, pin);
  std::uint64_t begin = blocks.front().offset, end = 0, wanted = 0;
  for (const FileRange& block : blocks) {
    begin = std::min(begin, block.offset);
    end = std::max(end, block.offset + block.bytes);
    wanted += block.bytes;
  }
  if (end - begin > wanted + kGap) return table.unpack(reader, row, slot, pin);
  std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin));
  FEEDLINE_TRY(const std::size_t got, reader.read_at(begin, bytes));
  const FileRange range{begin, got};
  const Bytes part = Bytes(bytes).first(got);
  return table.unpack(FetchedReader(reader, {&range, 1}, {&part, 1}), row, slot, pin);
}

// Returns whether a row's value is an image, or nullopt if the row has no value.
Result<std::optional<bool>> is_image_in(const ColumnTable& table, const storage::Reader& reader, std::uint64_t row,
                                        std::size_t slot) {
  std::array<std::byte, decode::kImageHead> head;
  Bytes bytes;
  std::shared_ptr<const void> pin;
  FEEDLINE_TRY(const CellLocation location, table.location(row, slot));
  switch (location.in) {
    case CellLocation::In::kNull:
      return std::nullopt;
    case CellLocation::In::kMemory:
      bytes = location.held;
      break;
    case CellLocation::In::kFile: {
      const auto room =
          std::span(head).first(static_cast<std::size_t>(std::min<std::uint64_t>(location.bytes, head.size())));
      FEEDLINE_TRY(const std::size_t got, reader.read_at(location.offset, room));
      bytes = room.first(got);
      break;
    }
    case CellLocation::In::kPacked: {
      FEEDLINE_TRY(const TableCell cell, unpack_by_one_read(table, reader, row, slot, pin));
      if (cell.is_null) return std::nullopt;
      bytes = cell.bytes;
      break;
    }
  }
  return !decode::image_extension(bytes).empty();
}

// Returns whether the first value is an image. Ignores damaged values, which cause an error when their row is read.
Result<bool> begins_with_image(const ColumnTable& table, const storage::Reader& reader, std::size_t slot) {
  for (std::uint64_t row = 0; row < std::min(table.rows(), kLookedAt); ++row) {
    const auto found = is_image_in(table, reader, row, slot);
    if (!found && found.error().code == ErrorCode::kStorage) return std::unexpected(found.error());
    if (!found) return false;
    if (*found) return **found;
  }
  return false;
}

// Returns the fields that would be chosen if all columns in `images` were images. These fields use the same columns or
// fewer.
Result<std::vector<PickedColumn>> pick_as_images(const std::vector<std::string>& specs, std::vector<ColumnType> columns,
                                                 const std::vector<std::size_t>& images) {
  for (const std::size_t at : images) columns[at].is_image = true;
  return pick_columns(specs, columns);
}

}  // namespace

// Opens the file as a separate table, because the columns of the dataset's table can be chosen only once. If possible,
// chooses the same columns as the dataset, so that both tables use the bytes cached by the reader.
Result<void> recognise_images(const TableKind& kind, const ShardFile& file, const storage::Reader& reader,
                              const std::vector<std::string>& specs, std::vector<ColumnType>& columns) {
  const auto* opening = dynamic_cast<const OpeningReader*>(&reader);
  std::string note = opening == nullptr ? std::string() : opening->note();
  auto unknown = columns_of_unknown_bytes(specs, columns);
  std::erase_if(unknown, [&](std::size_t at) {
    const auto noted = find_in_note(note, columns[at].name);
    columns[at].is_image = noted.value_or(false);
    return noted.has_value();
  });
  if (unknown.empty()) return {};
  FEEDLINE_TRY(const auto table, kind.open(file, reader));
  const auto picked = pick_as_images(specs, columns, unknown);
  if (!picked) return {};  // they cannot be picked later either, and that error is reported
  const auto locations = find_columns(*picked, table->columns());
  if (!locations) return {};  // a different schema; the later error names the file
  if (const auto chosen = table->choose(reader, *locations); !chosen)
    return chosen.error().code == ErrorCode::kStorage ? std::unexpected(chosen.error()) : Result<void>();
  std::shared_ptr<const storage::Reader> values(std::shared_ptr<const void>(), &reader);
  if (opening != nullptr) {
    FEEDLINE_TRY(values, opening->values());
  }
  for (const std::size_t at : unknown) {
    const auto is_of = [&](const PickedColumn& one) { return one.column.name == columns[at].name; };
    const auto slot = static_cast<std::size_t>(std::ranges::find_if(*picked, is_of) - picked->begin());
    FEEDLINE_CHECK(slot < picked->size());
    FEEDLINE_TRY(columns[at].is_image, begins_with_image(*table, *values, slot));
    add_to_note(note, columns[at].name, columns[at].is_image);
  }
  if (opening != nullptr) opening->set_note(std::move(note));
  return {};
}

std::vector<UnopenedColumn> unopened_of_all(const std::vector<PickedColumn>& fields, bool are_default,
                                            const Tables& tables) {
  std::vector<UnopenedColumn> left;
  std::set<std::string_view> seen;
  for (const auto& table : tables) {
    if (table == nullptr) continue;
    const bool is_first = seen.empty();
    std::vector<ColumnType> more;
    for (const ColumnType& column : table->columns())
      if (seen.insert(column.name).second) more.push_back(column);
    for (UnopenedColumn& column : unopened_columns(fields, are_default, more)) {
      if (!is_first) column.reason = "only some files have this column", column.spec.clear();
      left.push_back(std::move(column));
    }
  }
  return left;
}

}  // namespace feedline::format
