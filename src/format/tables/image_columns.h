// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds properties of a dataset's columns that the schema does not have.

#include <memory>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/tables/column.h"
#include "format/tables/column_choice.h"
#include "format/tables/column_table.h"
#include "format/tables/tables_format.h"
#include "storage/reader.h"

namespace feedline::format {

// Marks columns of the dataset as images if their first values are images and neither the schema nor a name shows it.
// file, reader: the first table with rows, which is opened again. If the reader is an OpeningReader, its note stores
// the result, so that the next opening reads no values. kStorage: the table cannot be read.
Result<void> recognise_images(const TableKind& kind, const ShardFile& file, const storage::Reader& reader,
                              const std::vector<std::string>& specs, std::vector<ColumnType>& columns);

// Returns the columns of all tables that no field uses: those of the first table, then those that only others have. A
// table that could not be opened is nullptr.
std::vector<UnopenedColumn> unopened_of_all(const std::vector<PickedColumn>& fields, bool are_default,
                                            const std::vector<std::unique_ptr<ColumnTable>>& tables);

}  // namespace feedline::format
