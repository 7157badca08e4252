// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses which columns are fields, and their kinds.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/tables/column.h"

namespace feedline::format {

struct PickedColumn {
  FieldDescription description;
  ColumnType column;
  std::uint64_t row_of = 0;  // values per row of boxes or points in a flat list; 0: no reshaping
};

// Chooses one field per spec, "COLUMN" or "NAME=COLUMN;ALTERNATIVE:KIND". Without specs: an image and, if there is one,
// a label; otherwise every column that can be a field. kConfig: the column does not exist, its values cannot have the
// kind in the spec, or two fields have the same name.
Result<std::vector<PickedColumn>> pick_columns(const std::vector<std::string>& specs,
                                               const std::vector<ColumnType>& columns);

// For columns without values in the first file, sets the type from another file.
void complete_columns(std::vector<ColumnType>& columns, const std::vector<ColumnType>& of_another);
// Returns the columns of bytes that pick_columns() makes fields of and for which neither name nor schema shows whether
// they are images; their first values decide.
std::vector<std::size_t> columns_of_unknown_bytes(const std::vector<std::string>& specs,
                                                  const std::vector<ColumnType>& columns);

// Returns the columns that no field uses.
std::vector<UnopenedColumn> unopened_columns(const std::vector<PickedColumn>& fields, bool are_default,
                                             const std::vector<ColumnType>& columns);

// Describes a column that cannot be a field. Requires: it has the type kOther or kNothing.
UnopenedColumn unread_column(const ColumnType& column);

// Returns remarks for fields whose column type has a meaning beyond the values.
std::vector<FieldRemark> remarks_of(const std::vector<PickedColumn>& fields);

// Finds the chosen columns among those of another shard. kConfig: one is missing, or has a different type.
Result<std::vector<std::size_t>> find_columns(const std::vector<PickedColumn>& fields,
                                              const std::vector<ColumnType>& columns);

// Returns the first few columns as text: "image (bytes), label (int64)".
std::string names_of(const std::vector<ColumnType>& columns);

}  // namespace feedline::format
