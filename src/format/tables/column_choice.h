// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which columns are fields, and what the fields are.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/tables/column.h"

namespace feedline::format {

struct PickedColumn {
  FieldDescription description;
  ColumnType column;
  std::uint64_t row_of = 0;  // numbers of a flat list that make a row of boxes or points; 0: as they are
};

// One field per spec, "COLUMN", "NAME=COLUMN;ALTERNATIVE:KIND"; none: an image and, where there is one, a label, else
// every column that a field can be made of. kConfig: no such column, values that cannot be what the spec says, two
// fields of one name.
Result<std::vector<PickedColumn>> pick_columns(const std::vector<std::string>& specs,
                                               const std::vector<ColumnType>& columns);

// Gives columns that hold nothing in the first file the type that they have in another one.
void complete_columns(std::vector<ColumnType>& columns, const std::vector<ColumnType>& of_another);
// The columns of bytes of which pick_columns() makes fields, and whose names and schema do not show whether they are
// images: their first values do.
std::vector<std::size_t> columns_of_unknown_bytes(const std::vector<std::string>& specs,
                                                  const std::vector<ColumnType>& columns);

// The columns among these that no field is of.
std::vector<UnopenedColumn> unopened_columns(const std::vector<PickedColumn>& fields, bool are_default,
                                             const std::vector<ColumnType>& columns);

// Of fields whose column stands for more than its values.
std::vector<FieldRemark> remarks_of(const std::vector<PickedColumn>& fields);

// The columns of bytes of which pick_columns() makes fields, and whose names and schema do not show whether they are
// images: their first values do.
std::vector<std::size_t> columns_of_unknown_bytes(const std::vector<std::string>& specs,
                                                  const std::vector<ColumnType>& columns);

// The columns among these that no field is of.
std::vector<UnopenedColumn> unopened_columns(const std::vector<PickedColumn>& fields, bool are_default,
                                             const std::vector<ColumnType>& columns);

// Of fields whose column stands for more than its values.
std::vector<FieldRemark> remarks_of(const std::vector<PickedColumn>& fields);

// Where the chosen columns are among these, of another shard. kConfig: one is not there, or holds something else.
Result<std::vector<std::size_t>> find_columns(const std::vector<PickedColumn>& fields,
                                              const std::vector<ColumnType>& columns);

// "image (bytes), label (int64)", the first few.
std::string names_of(const std::vector<ColumnType>& columns);

}  // namespace feedline::format
