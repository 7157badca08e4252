// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a row's values to the fields of a record, and to the files of a sample.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/columnar/column_choice.h"
#include "format/columnar/column_table.h"
#include "memory/record.h"

namespace feedline::format {

// Reads a value into `room`, or maps it and stores the owner in record.pin. Adds to record.bytes_read.
Result<TableCell> read_cell(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
                            std::uint64_t row, std::size_t slot, memory::Record& record, memory::ByteBuffer& room);

// Converts the cells of a row to fields. cell_of(slot, room) reads a cell; `rooms` are buffers for the fields, one for
// each slot.
// Pass std::ref(lambda), which does not allocate.
using CellOf = std::function<Result<TableCell>(std::size_t slot, memory::ByteBuffer& room)>;
Result<void> make_fields(const std::vector<PickedColumn>& choices, const CellOf& cell_of, std::uint64_t most_bytes,
                         std::span<memory::ByteBuffer> rooms, std::span<memory::Record::Field> fields);

// Converts a cell to a field, or to the number of a matrix. Tensors whose dimensions are reordered are copied to
// `room`, which may be the cell's buffer. Fails with kData if the value of a required field is missing, a file is
// empty, an integer is invalid, or boxes or a tensor have the wrong number of values.
Result<void> make_field(const PickedColumn& choice, const TableCell& cell, std::uint64_t most_bytes,
                        memory::ByteBuffer& room, memory::Record::Field& field);

// Returns the row's fields as files for `feedline pack`. The first image is named after its format ("jpg"), and the
// first integer "cls". Other files are named after their field, in lower-case letters, digits, "-" and "_": "NAME.jpg",
// "NAME.cls", "NAME.npy", "NAME.txt", "NAME.json" and "NAME.bin".
Result<std::vector<SampleFiles::File>> files_of(const std::vector<PickedColumn>& choices,
                                                std::span<const memory::Record::Field> fields);

}  // namespace feedline::format
