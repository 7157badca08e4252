// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses which columns are fields, and their kinds.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/column.h"
#include "format/columnar/number_copy.h"
#include "format/format.h"

namespace feedline::format {

struct PickedColumn {
  FieldDescription description;
  ColumnType column;
  std::uint64_t row_of = 0;  // values per row of boxes or points in a flat list; 0: no reshaping
  NullValue null = NullValue::kError;
  // Single numbers are converted to this dtype: float32 for the columns of a matrix, float64 for integers that may be
  // NaN, bool for NullValue::kFlag. nullopt: no conversion.
  std::optional<DType> made = std::nullopt;
  // The number of columns of the field, which are consecutive; 0 for all but the first of them.
  std::size_t members = 1;
};

// Chooses one field per spec, "COLUMN" or "NAME=COLUMN;ALTERNATIVE:KIND". "NAME=A+B" is a float32 array of the numbers
// of several columns. ":nan" instead of ":KIND" replaces nulls with NaN; ":valid" is true for rows without nulls. The
// result has an element for each column of each field. Without specs, chooses an image and, if there
// is one, a label; if there is no image, chooses every column that can be a field. Fails with kConfig if a column does
// not exist, its values cannot have the kind in the spec, or two fields have the same name.
Result<std::vector<PickedColumn>> pick_columns(const std::vector<std::string>& specs,
                                               const std::vector<ColumnType>& columns);

// Sets the types of columns that have no values in the first file to their types in another file.
void complete_columns(std::vector<ColumnType>& columns, const std::vector<ColumnType>& of_another);
// Returns the byte columns that pick_columns() would use and that may or may not contain images. Neither the name nor
// the schema shows whether a column contains images, so the first values must be read.
std::vector<std::size_t> columns_of_unknown_bytes(const std::vector<std::string>& specs,
                                                  const std::vector<ColumnType>& columns);

// Returns the columns that no field uses.
std::vector<UnopenedColumn> unopened_columns(const std::vector<PickedColumn>& fields, bool are_default,
                                             const std::vector<ColumnType>& columns);

// Describes a column that cannot be a field.
UnopenedColumn unread_column(const ColumnType& column);

// Returns remarks for fields whose column type has a meaning that the values do not show, such as a unit.
std::vector<FieldRemark> remarks_of(const std::vector<PickedColumn>& fields);

// Finds the chosen columns among the columns of another shard. Fails with kConfig if a column is missing or has a
// different type.
Result<std::vector<std::size_t>> find_columns(const std::vector<PickedColumn>& fields,
                                              const std::vector<ColumnType>& columns);

// Returns the first few columns as text: "image (bytes), label (int64)".
std::string names_of(const std::vector<ColumnType>& columns);

}  // namespace feedline::format
