// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads chunks whose samples are the rows of an Arrow file. LitData writes such chunks for dicts of plain values if
// pyarrow is installed:
//
//     u32 samples; u32 offsets, one more than samples, all equal to the end of this table; an Arrow file or stream;
//     u32 size of the Arrow data; "LDARW01\0"
//
// Source: litdata/streaming/{writer,item_loader}.py.

#include <cstdint>
#include <map>
#include <string>

#include "feedline/error.h"
#include "format/columnar/tables_format.h"
#include "storage/reader.h"

namespace feedline::format {

// Returns whether the first bytes of a chunk show that the chunk has Arrow rows.
Result<bool> begins_as_arrow_rows(const storage::Reader& chunk);

// Returns the table kind of chunks with Arrow rows. `samples` maps the path of each chunk to the number of samples in
// the index.
TableKind arrow_rows_kind(std::map<std::string, std::uint64_t> samples);

}  // namespace feedline::format
