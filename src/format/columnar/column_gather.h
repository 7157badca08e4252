// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies the numbers of many rows to a batch, column by column.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "format/columnar/column_choice.h"
#include "format/columnar/column_table.h"
#include "format/columnar/row_copy.h"
#include "storage/reader.h"

namespace feedline::format {

// Returns whether gather_columns() supports these fields: all of them are numbers that are delivered as stored.
bool can_gather(const std::vector<PickedColumn>& choices);

// The slots [first, end) of a table.
struct SlotRange {
  std::size_t first = 0, end = 0;
};

// Writes the columns in `slots` of these rows to their fields. Slot i of the table is choices[i]. Returns the number of
// bytes read. Errors do not describe the row: the caller reads the rows one by one to find the bad row. Requires:
// `rows` is ascending.
Result<std::uint64_t> gather_columns(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
                                     const std::vector<PickedColumn>& choices, SlotRange slots,
                                     std::span<const GatheredRow> rows, std::span<const FieldRows> fields);

}  // namespace feedline::format
