// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/parquet_rows.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "format/columnar/cell_reader.h"
#include "format/columnar/parquet/parquet_table.h"
#include "format/columnar/tables_format.h"
#include "memory/number.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

template <typename Number>
std::string text_of(Number number) {
  std::array<char, 32> text;  // longer than the shortest form of any number
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end};
}

std::string text_of(bool is_true) { return is_true ? "true" : "false"; }

std::string text_of(float number) { return text_of(static_cast<double>(number)); }

std::string text_of(memory::HalfBits half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const double value = exponent == 0    ? std::ldexp(fraction, -24)
                       : exponent == 31 ? (fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                         : std::numeric_limits<double>::infinity())
                                        : std::ldexp(1024 + fraction, exponent - 25);
  return text_of((half.bits & 0x8000) != 0 ? -value : value);
}

// Converts the numbers of nested lists, in C order, to JSON.
std::string list_text(const ColumnType& column, std::span<const std::int64_t> extents, Bytes& bytes) {
  const std::size_t size = size_of(column.dtype);
  if (extents.empty()) {
    const Bytes one = bytes.first(size);
    bytes = bytes.subspan(size);
    return memory::with_number(column.dtype, one, [](auto number) { return text_of(number); });
  }
  std::string text = "[";
  for (std::int64_t i = 0; i < extents.front(); ++i)
    text += (i == 0 ? "" : ", ") + list_text(column, extents.subspan(1), bytes);
  return text + "]";
}

Cell cell_of(const ColumnType& column, const TableCell& value) {
  if (value.is_null) return {};
  const std::string text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  if (column.is_nested) return {CellKind::kJson, text};
  if (column.holds != Holds::kNumbers) return {CellKind::kText, text};
  const std::size_t elements = static_cast<std::size_t>(value.shape.elements());
  if (value.bytes.size() < elements * size_of(column.dtype)) return {};
  Bytes bytes = value.bytes;
  const bool is_json = value.shape.dims() > 0 || column.dtype == DType::kBool;
  return {is_json ? CellKind::kJson : CellKind::kPlain,
          list_text(column, std::span(value.shape.begin(), value.shape.dims()), bytes)};
}

}  // namespace

Result<Table> read_parquet_rows(const std::shared_ptr<const storage::Storage>& storage, const std::string& path) {
  const TableKind kind{"parquet", "Parquet file", [](const ShardFile& file, const storage::Reader& reader) {
                         return ParquetTable::open(file, reader, new_block_cache());
                       }};
  FEEDLINE_TRY(const auto table, open_table(kind, storage, path));
  std::vector<std::size_t> chosen;
  Table made;
  for (std::size_t i = 0; i < table->columns().size(); ++i) {
    const ColumnType& column = table->columns()[i];
    if (column.is_on_request) continue;  // another form of a column that is chosen
    if (column.holds == Holds::kOther || column.holds == Holds::kNothing || column.has_bytes) {
      made.unread.push_back(unread_column(column));
      continue;
    }
    chosen.push_back(i);
    TableColumn& added = made.columns.emplace_back(TableColumn{.name = column.name});
    added.are_bytes = column.holds == Holds::kBytes;
    if (!column.meaning.empty()) added.unit = column.unit, added.type = described(column);
  }
  FEEDLINE_TRY(const auto opened, table->reader());
  FEEDLINE_CHECK_OK(table->choose(*opened.reader, chosen));
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  memory::ByteBuffer room;
  for (std::uint64_t row = 0; row < table->rows(); ++row) {
    for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
      record.pin.reset();
      auto cell = read_cell(*table, opened.reader, row, slot, record, room);
      if (!cell) {
        Error error = std::move(cell).error();
        error.what = "row " + std::to_string(row) + ", column '" + made.columns[slot].name + "': " + error.what;
        return std::unexpected(std::move(error));
      }
      made.columns[slot].add(cell_of(table->columns()[chosen[slot]], *cell));
    }
    made.lines.push_back(row + 1);  // row numbers, because there are no lines
  }
  if (made.rows() == 0) return data_error("the table has no rows", "format");
  made.seal();
  return made;
}

}  // namespace feedline::format
