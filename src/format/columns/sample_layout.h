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
// The values of lines are text: integers and real numbers as digits, strings as UTF-8.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>

#include "format/columns/column.h"
#include "format/compression/compression.h"
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

// Splits a sample into the values of its columns, as views of `sample`, or of `room` if they were unescaped. On failure
// returns the reason, as a sentence about the sample. Requires: values.size() == schema.columns.size(), which is 1 for
// kOneValue.
std::expected<void, std::string> split_sample(std::span<const std::byte> sample, const SampleSchema& schema,
                                              std::span<std::span<const std::byte>> values, memory::ByteBuffer& room);

}  // namespace feedline::format
