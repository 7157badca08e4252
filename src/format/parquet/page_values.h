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
#include "format/tables/block_store.h"

namespace feedline::format {

// Immutable after construction.
struct PageValues {
  std::uint64_t count = 0;
  // Numbers and fixed-size byte strings: concatenated, `width` bytes each.
  std::uint64_t width = 0;  // 0 if `slices` is used instead
  std::vector<std::byte> data = {};
  std::span<const std::byte> stored = {};  // replaces `data`
  // Byte strings, which refer to `data`, or to the page or dictionary that `kept` owns.
  struct Slice {
    const std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
  };
  std::vector<Slice> slices = {};
  std::span<const Slice> stored_slices = {};  // replaces `slices`
  std::shared_ptr<const void> kept = nullptr;
  bool is_in_dictionary = false;  // whether the byte strings are those of the dictionary that `kept` owns

  std::span<const std::byte> at(std::uint64_t i) const {
    if (width > 0) return numbers().subspan(i * width, width);
    const Slice& slice = strings()[i];
    return {slice.begin, slice.bytes};
  }
  std::span<const std::byte> numbers() const { return stored.empty() ? std::span(data) : stored; }
  std::span<const Slice> strings() const { return stored_slices.empty() ? std::span(slices) : stored_slices; }
  std::uint64_t bytes() const { return data.capacity() + slices.capacity() * sizeof(Slice); }
};

// Moves the values to the block store, except the strings of a dictionary. Returns false if they cannot be stored.
bool move_to(BlockStore& store, PageValues& values);

// Decodes `count` values from `in`, the part of a page after its levels. `page` owns `in`. dictionary: the chunk's
// dictionary, or nullptr. kData: the values do not fit into `in`. kConfig: an unsupported encoding.
Result<PageValues> decode_values(const ParquetColumn& column, std::int64_t encoding, std::span<const std::byte> in,
                                 std::uint64_t count, const std::shared_ptr<const PageValues>& dictionary,
                                 const std::shared_ptr<const void>& page);

}  // namespace feedline::format
