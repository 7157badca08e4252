// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/column.h"
#include "format/columnar/parquet/parquet_metadata.h"

namespace feedline::format {

// A leaf of the schema that can be read as a field.
struct ParquetColumn {
  ColumnType type;
  std::size_t leaf = 0;  // index of the leaf, and of its chunk in each row group
  ParquetType stored = ParquetType::kBytes;
  std::uint64_t value_bytes = 0;  // size of a stored number or of kFixedBytes
  std::uint64_t made_bytes = 0;   // size of a delivered number
  // The maximum levels. Levels encode how much of a value's path is present.
  unsigned most_definition = 0, most_repetition = 0;
  // For each list, the lowest definition level at which it has an element; the outermost list is first.
  std::vector<unsigned> list_definitions = {};
};

// Returns the columns of a file. Columns that cannot be fields have the type Holds::kOther. Fails with kData if the
// schema is inconsistent.
Result<std::vector<ParquetColumn>> read_parquet_schema(const ParquetMetadata& metadata);

}  // namespace feedline::format
