// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the values of a stored sample lie one behind the other.
//
//     sized       u32 bytes of each value whose column has no fixed size, little-endian; the values, in the order of the
//                 columns: MDS, LitData
//     one value   that of the one column: LitData's tokens
//     json        a line with an object: {"column": value, ...} and a line's end (streaming/base/format/json)
//     separated   a line of cells in the order of the columns: a separator between two, a line's end behind the last;
//                 nothing is quoted (streaming/base/format/xsv)
//
// The values of lines are text: digits of integers and of real numbers, and strings as UTF-8.

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

// Of all samples of a shard.
struct SampleSchema {
  Columns columns;
  SampleLayout layout = SampleLayout::kSized;
  std::string separator = {}, newline = {};     // of kSeparated, neither empty
  std::optional<Compression> compression = {};  // of each sample by itself

  friend bool operator==(const SampleSchema&, const SampleSchema&) = default;
};

// The value of each column, in `sample`, or in `room` where it had to be unescaped. Why it cannot be had: a sentence
// about the sample. Requires: values.size() == schema.columns.size(), one of kOneValue.
std::expected<void, std::string> split_sample(std::span<const std::byte> sample, const SampleSchema& schema,
                                              std::span<std::span<const std::byte>> values, memory::ByteBuffer& room);

}  // namespace feedline::format
