// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a Parquet file's footer that are needed to read samples. See parquet.thrift in apache/parquet-format.
//
//     "PAR1", pages, the footer (FileMetaData), u32 size of the footer, "PAR1"; "PARE" if the footer is encrypted

#include <algorithm>
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

// An element of the schema. Elements are in depth-first order.
struct ParquetNode {
  std::string name;
  std::optional<ParquetType> type = {};  // only for leaves
  std::uint64_t type_bytes = 0;          // size of kFixedBytes
  Repetition repetition = Repetition::kRequired;
  std::uint64_t children = 0;
  std::optional<std::int64_t> converted = {};  // ConvertedType
  std::optional<std::int64_t> logical = {};    // the member of LogicalType that is set
  std::int64_t integer_bits = 0;               // for LogicalType INTEGER
  bool is_signed = true;
  std::string unit = {};  // for LogicalTypes TIME and TIMESTAMP: "ms", "us" or "ns"
  bool is_utc = false;    // for these types: whether values are adjusted to UTC
};

struct ParquetColumnChunk {
  std::int64_t type = -1, codec = 0, values = 0;
  std::int64_t packed_bytes = 0, plain_bytes = 0;
  std::int64_t data_offset = 0, dictionary_offset = 0;  // 0 if there is none
  std::int64_t index_offset = 0, index_bytes = 0;       // position of the OffsetIndex; 0 if there is none
  std::int64_t nulls = -1;                              // -1 if unknown
  bool is_elsewhere = false, is_encrypted = false;
};
// The decompressed size of a chunk, for estimates: the file may be damaged.
inline std::uint64_t plain_bytes_of(const ParquetColumnChunk& chunk) {
  return static_cast<std::uint64_t>(std::max({chunk.plain_bytes, chunk.packed_bytes, std::int64_t{0}}));
}

struct ParquetRowGroup {
  std::int64_t rows = 0;
  std::vector<ParquetColumnChunk> columns;  // one per leaf
};

struct ParquetMetadata {
  std::vector<ParquetNode> schema;
  std::int64_t rows = 0;
  std::vector<ParquetRowGroup> groups;
  std::string features;      // the features of `datasets`, as JSON
  std::string arrow_schema;  // the schema stored by an Arrow library, in base64
};

// Parses the metadata. Returns nullopt if the metadata extends past the end of `bytes`.
std::optional<ParquetMetadata> parse_parquet_metadata(std::span<const std::byte> bytes);

// Reads the footer of an object of `bytes` bytes. Fails with kData if the object is truncated or damaged, a row group
// lacks a leaf column, or the numbers of rows do not add up. Fails with kConfig if the object is encrypted.
Result<ParquetMetadata> read_parquet_metadata(const storage::Reader& reader, std::uint64_t bytes);

}  // namespace feedline::format
