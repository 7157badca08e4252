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

// Where a field is: in the files that a column's cells name, or in the cells.
enum class ColumnUse : std::uint8_t { kFile, kInteger, kReal, kClass, kText };

struct ColumnField {
  FieldDescription description;
  std::size_t column = 0;
  ColumnUse use = ColumnUse::kText;
  std::vector<bool> absent = {};           // of each row
  std::vector<std::int64_t> numbers = {};  // of each row: integers, or classes
  std::vector<double> reals = {};          // likewise
  std::vector<std::string> classes = {};   // of kClass, sorted
};

// One field per spec, "[NAME=]COLUMN[:KIND]", whose kind may be "class", for numbers of class names. Without specs: an
// image and, if there is one, a label; for a table without images, and for metadata next to images (is_metadata), all
// columns, like Hugging Face's ImageFolder. kConfig: no such column, one that cannot be of that kind, or two fields of
// one name. kData, with the row as where.record: a cell that is not an integer of 64 bits, in a column of integers.
Result<std::vector<ColumnField>> choose_columns(const std::vector<std::string>& specs, const Table& table,
                                                bool is_metadata);

// The columns that no field reads.
std::vector<UnopenedColumn> unopened_columns(const std::vector<ColumnField>& fields, bool are_default,
                                             const Table& table);

// Of fields whose column stands for more than its values.
std::vector<FieldRemark> remarks_of(const std::vector<ColumnField>& fields, const Table& table);

}  // namespace feedline::format
