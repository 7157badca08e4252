// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a row's values to the fields of a record, and to the files of a sample.

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

// The value, read into `room`, or mapped, which record.pin then keeps. Counts record.bytes_read.
Result<TableCell> read_cell(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
                            std::uint64_t row, std::size_t slot, memory::Record& record, memory::ByteBuffer& room);

// A tensor whose dimensions are reordered is copied to `room`, which may be that of the cell. kData: the value is
// missing and the field must have one; an empty file; not an integer; the wrong number of values for boxes or a tensor.
Result<void> make_field(const PickedColumn& choice, const TableCell& cell, std::uint64_t most_bytes,
                        memory::ByteBuffer& room, memory::Record::Field& field);

// The row's fields as files, which `feedline pack` writes: the first image "jpg", "png" or "webp", as its bytes are,
// the first integer "cls"; the others are called like their field, small letters, digits, "-" and "_" of it:
// "NAME.jpg", "NAME.cls", "NAME.npy", "NAME.txt", "NAME.json" and "NAME.bin".
Result<std::vector<SampleFiles::File>> files_of(const std::vector<PickedColumn>& choices,
                                                std::span<const memory::Record::Field> fields);

}  // namespace feedline::format
