// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values of a page, out of each of Parquet's encodings.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/parquet/page_header.h"
#include "format/parquet/parquet_schema.h"

namespace feedline::format {

// Immutable once made.
struct PageValues {
  std::uint64_t count = 0;
  // Numbers, and byte strings of one size: side by side, `width` bytes each.
  std::uint64_t width = 0;  // 0: `slices` in place of `data`
  std::vector<std::byte> data = {};
  // Byte strings: into `data`, or into the page or the dictionary, which `kept` keeps.
  struct Slice {
    const std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
  };
  std::vector<Slice> slices = {};
  std::shared_ptr<const void> kept = nullptr;

  std::span<const std::byte> at(std::uint64_t i) const {
    if (width > 0) return std::span(data).subspan(i * width, width);
    return {slices[i].begin, slices[i].bytes};
  }
  std::uint64_t bytes() const { return data.capacity() + slices.capacity() * sizeof(Slice); }
};

// `count` values, which `in` holds behind the levels of a page. `page` keeps `in`. dictionary: of the column's chunk;
// nullptr: it has none. kData: they do not fit into it; kConfig: an encoding that this version does not read.
Result<PageValues> decode_values(const ParquetColumn& column, std::int64_t encoding, std::span<const std::byte> in,
                                 std::uint64_t count, const std::shared_ptr<const PageValues>& dictionary,
                                 const std::shared_ptr<const void>& page);

}  // namespace feedline::format
