// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of MDS column types (streaming/base/format/mds/encodings.py).

#include <cstdint>
#include <optional>
#include <string>

#include "feedline/error.h"
#include "format/row_columns/column.h"

namespace feedline::format {

// Returns the column with the given name, encoding ("jpeg", "ndarray:float32:3,4") and size. The size is used only for
// encodings that do not define it. For pickles and unknown encodings, returns a column of kind kRefused. Fails with
// kData if the encoding cannot have this size.
Result<Column> mds_column(std::string name, std::string encoding, std::optional<std::int64_t> size);

// Returns a column of text lines with the encoding "int", "float" or "str", or a column of kind kRefused for other
// encodings (streaming/base/format/{json,xsv}/encodings.py).
Column line_column(std::string name, std::string encoding);

}  // namespace feedline::format
