// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "feedline/error.h"
#include "feedline/rows.h"
#include "format/format.h"

namespace feedline::format {

// The number of rows of a column.
std::uint64_t rows_of(const RowColumn& column);
// The column as a field. kConfig: a kind that the column cannot have.
Result<FieldDescription> field_of(const RowColumn& column);
// Whether the row's list of files has one for this column; true for columns of single files.
bool has_file(const FileColumn& column, std::uint64_t row);
// Returns the path or URL of a row's file in `path`; `room` is scratch memory. Requires: has_file().
void find_path(const FileColumn& column, std::uint64_t row, std::string& path, std::string& room);

}  // namespace feedline::format
