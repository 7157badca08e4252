// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tables of a dataset show of its columns besides their schema.

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

// Marks the columns of `columns`, those of the dataset, that are images by their first values, if neither the schema
// nor a name shows it. file, reader: of the first table with rows, which is opened once more. If the reader is an
// OpeningReader, its note remembers what was found, so that another opening reads no value. kStorage: it cannot be
// read.
Result<void> recognise_images(const TableKind& kind, const ShardFile& file, const storage::Reader& reader,
                              const std::vector<std::string>& specs, std::vector<ColumnType>& columns);

// The columns that no field is of, of all tables (nullptr: one that could not be opened): those of the first one, then
// those that only others have.
std::vector<UnopenedColumn> unopened_of_all(const std::vector<PickedColumn>& fields, bool are_default,
                                            const std::vector<std::unique_ptr<ColumnTable>>& tables);

}  // namespace feedline::format
