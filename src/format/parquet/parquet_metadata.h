// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the footer of a Parquet file says, as far as samples are read by it: parquet.thrift of the Apache project.
//
//     "PAR1", pages, the footer (FileMetaData), u32 its bytes, "PAR1"; "PARE" where the footer is encrypted

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

enum class ParquetType : std::uint8_t { kBool, kInt32, kInt64, kInt96, kFloat, kDouble, kBytes, kFixedBytes };
enum class Repetition : std::uint8_t { kRequired, kOptional, kRepeated };

// Of a schema, in the order of a walk from its root.
struct ParquetNode {
  std::string name;
  std::optional<ParquetType> type = {};  // of a leaf
  std::uint64_t type_bytes = 0;          // of kFixedBytes
  Repetition repetition = Repetition::kRequired;
  std::uint64_t children = 0;
  std::optional<std::int64_t> converted = {};  // ConvertedType
  std::optional<std::int64_t> logical = {};    // the field of LogicalType that is set
  std::int64_t integer_bits = 0;               // of LogicalType's INTEGER
  bool is_signed = true;
  std::string unit = {};  // of the LogicalTypes TIME and TIMESTAMP: "ms", "us", "ns"
  bool is_utc = false;    // likewise: are they adjusted to UTC?
};

struct ParquetColumnChunk {
  std::int64_t type = -1, codec = 0, values = 0;
  std::int64_t packed_bytes = 0;
  std::int64_t data_offset = 0, dictionary_offset = 0;  // 0: it has none
  std::int64_t index_offset = 0, index_bytes = 0;       // of the OffsetIndex; 0: it has none
  std::int64_t nulls = -1;                              // -1: not said
  bool is_elsewhere = false, is_encrypted = false;
};

struct ParquetRowGroup {
  std::int64_t rows = 0;
  std::vector<ParquetColumnChunk> columns;  // of the leaves
};

struct ParquetMetadata {
  std::vector<ParquetNode> schema;
  std::int64_t rows = 0;
  std::vector<ParquetRowGroup> groups;
  std::string features;      // the features of `datasets`, as JSON
  std::string arrow_schema;  // the schema stored by an Arrow library, in base64
};

// nullopt: it does not fit into its bytes.
std::optional<ParquetMetadata> parse_parquet_metadata(std::span<const std::byte> bytes);

// Reads and checks the footer of an object of `bytes` bytes: every row group has each leaf, and its rows add up. kData:
// damaged or cut. kConfig: encrypted.
Result<ParquetMetadata> read_parquet_metadata(const storage::Reader& reader, std::uint64_t bytes);

}  // namespace feedline::format
