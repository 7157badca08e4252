// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/table/table.h"

namespace feedline::format {

// Where a field's values are stored: in the files that a column's cells name, or in the cells.
enum class ColumnUse : std::uint8_t { kFile, kInteger, kReal, kClass, kText };

struct ColumnField {
  FieldDescription description;
  std::size_t column = 0;
  ColumnUse use = ColumnUse::kText;
  std::vector<bool> absent = {};           // one per row
  std::vector<std::int64_t> numbers = {};  // one per row: integers or class numbers
  std::vector<double> reals = {};          // one per row
  std::vector<std::string> classes = {};   // class names for kClass, sorted
};

// Chooses one field per spec, "[NAME=]COLUMN[:KIND]". The kind may also be "class", for the numbers of class names.
// Without specs: an image and, if there is one, a label; for a table without images, and for metadata next to images
// (is_metadata), all columns, like Hugging Face's ImageFolder. kConfig: the column does not exist or cannot have that
// kind, or two fields have the same name. kData, with the row as where.record: a cell in a column of integers is not a
// 64-bit integer.
Result<std::vector<ColumnField>> choose_columns(const std::vector<std::string>& specs, const Table& table,
                                                bool is_metadata);

// Returns the columns that no field reads.
std::vector<UnopenedColumn> unopened_columns(const std::vector<ColumnField>& fields, bool are_default,
                                             const Table& table);

// Returns remarks for fields whose column type has a meaning beyond the values.
std::vector<FieldRemark> remarks_of(const std::vector<ColumnField>& fields, const Table& table);

}  // namespace feedline::format
