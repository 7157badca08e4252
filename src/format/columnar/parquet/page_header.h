// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "feedline/error.h"

namespace feedline::format {

enum class ParquetEncoding : std::uint8_t {
  kPlain = 0,
  kPlainDictionary = 2,
  kRuns = 3,
  kBits = 4,
  kDelta = 5,
  kDeltaLength = 6,
  kDeltaBytes = 7,
  kDictionary = 8,
  kStreams = 9,
};

// The header that precedes the data of a page.
struct PageHeader {
  enum class Kind : std::uint8_t { kData, kIndex, kDictionary, kDataOfV2, kOther };
  Kind kind = Kind::kOther;
  std::uint64_t bytes = 0;  // size of the header itself
  std::uint64_t plain_bytes = 0, packed_bytes = 0;
  std::optional<std::uint32_t> crc = {};  // compressed size
  std::uint64_t values = 0;               // including nulls
  std::int64_t encoding = 0, definition_encoding = 3, repetition_encoding = 3;
  // only for kDataOfV2
  std::uint64_t rows = 0, nulls = 0;
  std::uint64_t definition_bytes = 0, repetition_bytes = 0;
  bool is_compressed = true;

  bool is_data() const { return kind == Kind::kData || kind == Kind::kDataOfV2; }
};

// Parses a page header. Returns nullopt if the bytes are not a complete header.
std::optional<PageHeader> parse_page_header(std::span<const std::byte> bytes);

}  // namespace feedline::format
