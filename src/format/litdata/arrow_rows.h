// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chunks whose samples are the rows of an Arrow file, which LitData writes for dicts of plain values if pyarrow is
// installed:
//
//     u32 samples; u32 offsets, one more than samples, all of them the end of this table; an Arrow file or stream;
//     u32 its bytes; "LDARW01\0"
//
// Source: litdata/streaming/{writer,item_loader}.py.

#include <cstdint>
#include <map>
#include <string>

#include "feedline/error.h"
#include "format/tables/tables_format.h"
#include "storage/reader.h"

namespace feedline::format {

// Does a chunk begin like one with Arrow rows? Reads only its first bytes.
Result<bool> begins_as_arrow_rows(const storage::Reader& chunk);

// The kind of such chunks. samples: the index's number of samples of each chunk, by path.
TableKind arrow_rows_kind(std::map<std::string, std::uint64_t> samples);

}  // namespace feedline::format
