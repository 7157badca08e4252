// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "feedline/error.h"
#include "feedline/rows.h"
#include "format/format.h"

namespace feedline::format {

// Fails with kConfig or kData if a column has no cells, columns of paths differ in length, or offsets or classes are
// outside their range. All other functions require a column that passed this check.
Result<void> check_column(const RowColumn& column);
// The number of rows of a column.
std::uint64_t rows_of(const RowColumn& column);
// Returns the column as a field. Fails with kConfig if the column cannot have its kind.
Result<FieldDescription> field_of(const RowColumn& column);
// Returns whether the row has a file for this column. A row may lack a file only if the column has a list of files per
// row.
bool has_file(const FileColumn& column, std::uint64_t row);
// Returns whether the cells and the text around them are empty. Requires: has_file().
bool is_path_empty(const FileColumn& column, std::uint64_t row, std::string& room);
// Returns the path or URL of a row's file in `path`; `room` is scratch memory. Requires: has_file().
void find_path(const FileColumn& column, std::uint64_t row, std::string& path, std::string& room);

}  // namespace feedline::format
