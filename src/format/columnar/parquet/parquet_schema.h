// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/column.h"
#include "format/columnar/parquet/parquet_metadata.h"

namespace feedline::format {

struct NestedColumn;

// A leaf of the schema, or a nested column that is read as JSON.
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
  Holds value = Holds::kOther;  // what a single value holds
  bool is_member = false;       // also part of a nested column, so that its pages need the levels of their entries
  std::shared_ptr<const NestedColumn> nested = nullptr;
};

// Returns the columns of a file. Lists and maps whose members cannot all be read as arrays are nested columns, which
// replace these members; all others are also nested columns on request. Columns that cannot be fields have the type
// Holds::kOther. Fails with kData if the schema is inconsistent.
Result<std::vector<ParquetColumn>> read_parquet_schema(const ParquetMetadata& metadata);

}  // namespace feedline::format
