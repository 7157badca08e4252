// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "feedline/error.h"
#include "format/parquet/parquet_metadata.h"
#include "format/tables/column.h"

namespace feedline::format {

// A leaf of the schema that can be read as a field.
struct ParquetColumn {
  ColumnType type;
  std::size_t leaf = 0;  // index of the leaf, and of its chunk in each row group
  ParquetType stored = ParquetType::kBytes;
  std::uint64_t value_bytes = 0;  // size of a stored number or of kFixedBytes
  std::uint64_t made_bytes = 0;   // size of a delivered number
  // Levels encode how much of a value's path is present.
  unsigned most_definition = 0, most_repetition = 0;
  // For each list, outermost first: the lowest definition level at which it has an element.
  std::vector<unsigned> list_definitions = {};
};

// kData: the tree is inconsistent. Columns that cannot be fields are returned as Holds::kOther.
Result<std::vector<ParquetColumn>> read_parquet_schema(const ParquetMetadata& metadata);

}  // namespace feedline::format
