// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layout of the values in a stored sample.
//
//     sized       u32 size of each value whose column has no fixed size, little-endian; the values, in the order of the
//                 columns: MDS, LitData
//     one value   the value of the only column: LitData's tokens
//     json        a line with an object: {"column": value, ...} and a newline (streaming/base/format/json)
//     separated   a line of cells in the order of the columns, with a separator between two cells and a newline after the
//                 last; no quoting (streaming/base/format/xsv)
//
// In lines, all values are text: numbers in decimal and strings in UTF-8.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>

#include "format/compression/compression.h"
#include "format/row_columns/column.h"
#include "memory/record.h"

namespace feedline::format {

enum class SampleLayout : std::uint8_t { kSized, kOneValue, kJson, kSeparated };

// The schema of all samples in a shard.
struct SampleSchema {
  Columns columns;
  SampleLayout layout = SampleLayout::kSized;
  std::string separator = {}, newline = {};     // for kSeparated, not empty
  std::optional<Compression> compression = {};  // compression of each single sample

  friend bool operator==(const SampleSchema&, const SampleSchema&) = default;
};

// The position of a value in its sample.
struct ValueRange {
  std::size_t offset = 0, bytes = 0;
};
// Returns the number of bytes with the sizes of values, at the beginning of a sample with the layout kSized.
std::size_t bytes_of_sizes(const Columns& columns);
// Finds the values of a sample with the layout kSized and `bytes` bytes, of which `sizes` are the first. On failure,
// returns a sentence about the problem. Requires: ranges.size() == columns.size().
std::expected<void, std::string> find_sized(std::span<const std::byte> sizes, const Columns& columns,
                                            std::uint64_t bytes, std::span<ValueRange> ranges);

// Splits a sample into the values of its columns. Unescaped values are views of `room`; all other values are views of
// `sample`. On failure, returns a sentence about the problem. Requires: values.size() == schema.columns.size(), which
// is 1 for kOneValue.
std::expected<void, std::string> split_sample(std::span<const std::byte> sample, const SampleSchema& schema,
                                              std::span<std::span<const std::byte>> values, memory::ByteBuffer& room);

}  // namespace feedline::format
