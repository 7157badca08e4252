// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the values of a page from any of Parquet's encodings.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/parquet/page_header.h"
#include "format/parquet/parquet_schema.h"

namespace feedline::format {

// Immutable after construction.
struct PageValues {
  std::uint64_t count = 0;
  // Numbers and fixed-size byte strings: concatenated, `width` bytes each.
  std::uint64_t width = 0;  // 0 if `slices` is used instead of `data`
  std::vector<std::byte> data = {};
  // Byte strings, which refer to `data`, or to the page or dictionary that `kept` owns.
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

// Decodes `count` values from `in`, the part of a page after its levels. `page` owns `in`. dictionary: the chunk's
// dictionary, or nullptr. kData: the values do not fit into `in`. kConfig: an unsupported encoding.
Result<PageValues> decode_values(const ParquetColumn& column, std::int64_t encoding, std::span<const std::byte> in,
                                 std::uint64_t count, const std::shared_ptr<const PageValues>& dictionary,
                                 const std::shared_ptr<const void>& page);

}  // namespace feedline::format
