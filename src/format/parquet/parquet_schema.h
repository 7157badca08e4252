// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "feedline/error.h"
#include "format/parquet/parquet_metadata.h"
#include "format/tables/column.h"

namespace feedline::format {

// A column that samples' fields are made of: a leaf of the schema.
struct ParquetColumn {
  ColumnType type;
  std::size_t leaf = 0;  // among the leaves: its chunk in each row group
  ParquetType stored = ParquetType::kBytes;
  std::uint64_t value_bytes = 0;  // of a stored number, or of kFixedBytes
  std::uint64_t made_bytes = 0;   // of a number as it is given
  // Levels, which say of each value how much of its path is there.
  unsigned most_definition = 0, most_repetition = 0;
  // For each list, outermost first: the lowest definition level at which it has an element.
  std::vector<unsigned> list_definitions = {};
};

// kData: the tree does not fit. Columns of what no field is made of come as Holds::kOther.
Result<std::vector<ParquetColumn>> read_parquet_schema(const ParquetMetadata& metadata);

}  // namespace feedline::format
