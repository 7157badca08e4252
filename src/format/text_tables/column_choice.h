// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/text_tables/table.h"

namespace feedline::format {

// The source of a field's values: files that the cells of a column name, or the cells themselves.
enum class ColumnUse : std::uint8_t { kFile, kInteger, kReal, kClass, kText };

struct ColumnField {
  FieldDescription description;
  std::size_t column = 0;
  ColumnUse use = ColumnUse::kText;
  std::vector<bool> absent = {};           // one per row
  bool lacks_some = false;                 // whether a sample's row is absent
  std::vector<std::int64_t> numbers = {};  // one per row: integers or class numbers
  std::vector<double> reals = {};          // one per row
  std::vector<std::string> classes = {};   // class names for kClass, sorted
};

// Chooses one field per spec, "[NAME=]COLUMN[:KIND]". The kind "class" converts class names to numbers. Without specs,
// the fields are an image or video and, if there is one, a label. For tables without them, and for metadata next to
// images (is_metadata), the fields are all columns, as in Hugging Face's ImageFolder. Fails with kConfig if a column
// does not exist or cannot have the kind in its spec, or if two fields have the same name. Fails with kData, with the
// row in where.record, if a cell in a column of integers is not a 64-bit integer.
Result<std::vector<ColumnField>> choose_columns(const std::vector<std::string>& specs, const Table& table,
                                                bool is_metadata);

// Returns the columns that no field reads.
std::vector<UnopenedColumn> unopened_columns(const std::vector<ColumnField>& fields, bool are_default,
                                             const Table& table);

// Returns remarks for fields whose column type has a meaning, such as a unit, that the values do not show.
std::vector<FieldRemark> remarks_of(const std::vector<ColumnField>& fields, const Table& table);

}  // namespace feedline::format
