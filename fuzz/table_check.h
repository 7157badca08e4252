// SPDX-License-Identifier: Apache-2.0
#pragma once

// Used by the table formats' fuzzers to check a table that was opened.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/columnar/cell_reader.h"
#include "format/columnar/column_choice.h"
#include "format/columnar/column_table.h"
#include "memory/record.h"

namespace feedline::format {

// Creates all possible fields from the columns of the first rows and the last one, and reads every byte for the
// sanitizers.
inline void check_table(ColumnTable& table, const storage::Reader& reader) {
  constexpr std::uint64_t kRows = 8;
  std::vector<std::string> specs;
  for (const ColumnType& column : table.columns())
    if (column.holds != Holds::kOther && column.holds != Holds::kNothing &&
        column.name.find_first_of(":;=") == column.name.npos && !column.name.empty() && specs.size() < 32 &&
        std::ranges::count(specs, column.name) == 0)
      specs.push_back(column.name);
  (void)pick_columns({}, table.columns());
  if (specs.empty()) return;
  const auto choices = pick_columns(specs, table.columns());
  if (!choices) return;
  const auto columns = find_columns(*choices, table.columns());
  if (!columns || !table.choose(reader, *columns)) return;
  const std::shared_ptr<const storage::Reader> shared(std::shared_ptr<const void>(), &reader);
  memory::Record record;
  record.more.resize(choices->size());
  std::uint8_t sum = 0;
  const auto look = [&](std::uint64_t row) {
    (void)table.offset_of(row);
    std::vector<memory::Record::Field> fields(choices->size());
    bool is_whole = true;
    for (std::size_t slot = 0; slot < choices->size(); ++slot) {
      const auto cell = read_cell(table, shared, row, slot, record, record.more[slot]);
      is_whole =
          cell && make_field((*choices)[slot], *cell, record.most_bytes, record.more[slot], fields[slot]) && is_whole;
      if (!cell) continue;
      for (const std::byte byte : cell->bytes) sum ^= std::to_integer<std::uint8_t>(byte);
      if (fields[slot].array) FEEDLINE_CHECK(fields[slot].array->bytes() == fields[slot].bytes.size());
    }
    if (is_whole) (void)files_of(*choices, fields);
  };
  for (std::uint64_t row = 0; row < std::min(table.rows(), kRows); ++row) look(row);
  if (table.rows() > kRows) look(table.rows() - 1);
  static volatile std::uint8_t sink;
  sink = sum;
}

}  // namespace feedline::format
