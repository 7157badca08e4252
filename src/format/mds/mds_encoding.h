// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of MDS column types (streaming/base/format/mds/encodings.py).

#include <cstdint>
#include <optional>
#include <string>

#include "feedline/error.h"
#include "format/columns/column.h"

namespace feedline::format {

// Returns the column with the given name, encoding ("jpeg", "ndarray:float32:3,4") and size; the size is used only by
// encodings that do not define it. Pickles and unknown encodings produce a column that is refused when it is read.
// kData: a size that the encoding cannot have.
Result<Column> mds_column(std::string name, std::string encoding, std::optional<std::int64_t> size);

// Returns a column of text lines: "int", "float" or "str", or one that is refused
// (streaming/base/format/{json,xsv}/encodings.py).
Column line_column(std::string name, std::string encoding);

}  // namespace feedline::format
