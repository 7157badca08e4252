// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the values in a page from any Parquet encoding.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/block_store.h"
#include "format/columnar/parquet/page_header.h"
#include "format/columnar/parquet/parquet_schema.h"

namespace feedline::format {

// Immutable after construction.
struct PageValues {
  std::uint64_t count = 0;
  // Concatenated numbers or fixed-size byte strings of `width` bytes each.
  std::uint64_t width = 0;  // 0 if `slices` is used instead
  std::vector<std::byte> data = {};
  std::span<const std::byte> stored = {};  // replaces `data`
  // A byte string, which refers to `data`, or to the page or dictionary that `owner` owns.
  struct Slice {
    const std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
  };
  std::vector<Slice> slices = {};
  std::span<const Slice> stored_slices = {};  // replaces `slices`
  std::shared_ptr<const void> owner = nullptr;
  bool is_in_dictionary = false;  // whether the byte strings are those of the dictionary that `owner` owns

  std::span<const std::byte> at(std::uint64_t i) const {
    if (width > 0) return numbers().subspan(i * width, width);
    const Slice& slice = strings()[i];
    return {slice.begin, slice.bytes};
  }
  std::span<const std::byte> numbers() const { return stored.empty() ? std::span(data) : stored; }
  std::span<const Slice> strings() const { return stored_slices.empty() ? std::span(slices) : stored_slices; }
  std::uint64_t bytes() const { return data.capacity() + slices.capacity() * sizeof(Slice); }
};

// Moves the values to the block store, except strings that are in a dictionary. Returns false if storing fails.
bool move_to(BlockStore& store, PageValues& values);

// Decodes `count` values from `in`, the bytes after the levels of a page; `page` owns these bytes. `dictionary` is the
// dictionary of the chunk, or nullptr. Fails with kData if the values extend past the end of `in`, and with kConfig if
// the encoding is not supported.
Result<PageValues> decode_values(const ParquetColumn& column, std::int64_t encoding, std::span<const std::byte> in,
                                 std::uint64_t count, const std::shared_ptr<const PageValues>& dictionary,
                                 const std::shared_ptr<const void>& page);

}  // namespace feedline::format
