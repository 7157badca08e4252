// SPDX-License-Identifier: Apache-2.0
#pragma once

// What MDS calls the types of its columns (streaming/base/format/mds/encodings.py).

#include <cstdint>
#include <optional>
#include <string>

#include "feedline/error.h"
#include "format/columns/column.h"

namespace feedline::format {

// The column of a name, an encoding ("jpeg", "ndarray:float32:3,4") and a size, which counts for encodings that do not
// say it. Pickles, and encodings that this version does not know, are columns that are refused. kData: a size that the
// encoding cannot have.
Result<Column> mds_column(std::string name, std::string encoding, std::optional<std::int64_t> size);

// A column of lines of text: "int", "float" or "str", or one that is refused
// (streaming/base/format/{json,xsv}/encodings.py).
Column line_column(std::string name, std::string encoding);

}  // namespace feedline::format
