// SPDX-License-Identifier: Apache-2.0

// Any bytes as a table of separated values or JSON lines: no crash, no read out of bounds. In an accepted table, each
// row has a cell or none for each column, and chosen columns have a value for each row.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "format/text_tables/column_choice.h"
#include "format/text_tables/table.h"

using namespace feedline;

namespace {

void check_fields(const format::Table& table, const std::vector<std::string>& specs, bool is_metadata) {
  const auto fields = format::choose_columns(specs, table, is_metadata);
  if (!fields) return;
  for (const format::ColumnField& field : *fields) {
    FEEDLINE_CHECK(field.column < table.columns.size());
    const bool has_numbers = field.use == format::ColumnUse::kInteger || field.use == format::ColumnUse::kClass;
    FEEDLINE_CHECK(field.numbers.size() == (has_numbers ? table.rows() : 0));
    FEEDLINE_CHECK(field.reals.size() == (field.use == format::ColumnUse::kReal ? table.rows() : 0));
    if (field.use == format::ColumnUse::kClass)
      for (std::uint64_t row = 0; row < table.rows(); ++row)
        if (!table.columns[field.column].absent[row])
          FEEDLINE_CHECK(field.classes[static_cast<std::size_t>(field.numbers[row])] ==
                         table.columns[field.column].cell(row));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  for (const char separator : {',', '\t', '\0'}) {
    const auto table = format::parse_table(text, separator);
    if (!table) continue;
    FEEDLINE_CHECK(table->rows() > 0);
    std::size_t taken = 0;
    for (const format::TableColumn& column : table->columns) {
      FEEDLINE_CHECK(column.ends.size() == table->rows() && column.absent.size() == table->rows());
      for (std::uint64_t row = 0; row < table->rows(); ++row) taken += column.cell(row).size();
    }
    FEEDLINE_CHECK(taken <= bytes);
    check_fields(*table, {}, false);
    check_fields(*table, {}, true);
    for (const format::TableColumn& column : table->columns)
      for (const char* kind : {":value", ":array", ":image", ":text", ":boxes"})
        check_fields(*table, {column.name + kind}, false);
  }
  return 0;
}
