// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines properties of a dataset's columns that the schema does not contain.

#include <memory>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/column.h"
#include "format/columnar/column_choice.h"
#include "format/columnar/column_table.h"
#include "format/columnar/tables_format.h"
#include "storage/reader.h"

namespace feedline::format {

// Marks columns as images if their first values are images, in case neither the schema nor a name shows it. `file` and
// `reader` belong to the first table that has rows; that table is opened again. If the reader is an OpeningReader, the
// result is stored in its note, so that values need not be read the next time the file is opened. Fails with kStorage
// if the table cannot be read.
Result<void> recognise_images(const TableKind& kind, const ShardFile& file, const storage::Reader& reader,
                              const std::vector<std::string>& specs, std::vector<ColumnType>& columns);

// Returns the columns in all tables that no field uses, beginning with the first table's columns. Tables that could not
// be opened are nullptr.
std::vector<UnopenedColumn> unopened_of_all(const std::vector<PickedColumn>& fields, bool are_default,
                                            const std::vector<std::unique_ptr<ColumnTable>>& tables);

}  // namespace feedline::format
