// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a row's values to the fields of a record, and to the files of a sample.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/tables/column_choice.h"
#include "format/tables/column_table.h"
#include "memory/record.h"

namespace feedline::format {

// Reads a value into `room`, or maps it and stores the owner in record.pin. Adds to record.bytes_read.
Result<TableCell> read_cell(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
                            std::uint64_t row, std::size_t slot, memory::Record& record, memory::ByteBuffer& room);

// Copies a tensor whose dimensions are reordered to `room`, which may be the cell's buffer. kData: the value of a
// required field is missing; an empty file; not an integer; the wrong number of values for boxes or a tensor.
Result<void> make_field(const PickedColumn& choice, const TableCell& cell, std::uint64_t most_bytes,
                        memory::ByteBuffer& room, memory::Record::Field& field);

// Returns the row's fields as files, which `feedline pack` writes. The first image is named after its format
// ("jpg"), and the first integer "cls". The other files are named after their field, reduced to lower-case letters,
// digits, "-" and "_": "NAME.jpg", "NAME.cls", "NAME.npy", "NAME.txt", "NAME.json" and "NAME.bin".
Result<std::vector<SampleFiles::File>> files_of(const std::vector<PickedColumn>& choices,
                                                std::span<const memory::Record::Field> fields);

}  // namespace feedline::format
