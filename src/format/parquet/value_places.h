// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the values of a page lie in it, of pages that keep byte strings as they are: without compression, checksum or
// dictionary, as `datasets` writes photos. The first row of a page reads all of it, and says so here; a later one
// reads its value alone, where a page has as many photos as a megabyte holds.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/parquet/page_header.h"
#include "format/parquet/page_rows.h"
#include "format/parquet/parquet_schema.h"

namespace feedline::format {

// Of the pages of one column. Thread-safe.
class ValuePlaces {
 public:
  static constexpr std::uint32_t kNull = 0xffffffff;
  struct Value {
    std::uint32_t offset = 0, bytes = kNull;  // from the page's first byte, its header; of a null kNull bytes
  };
  using Page = std::vector<Value>;

  explicit ValuePlaces(std::size_t pages) : pages_(pages) {}
  ~ValuePlaces();
  ValuePlaces(const ValuePlaces&) = delete;
  ValuePlaces& operator=(const ValuePlaces&) = delete;

  // By its rows; nullptr: nobody has noted them yet. It stays as long as this.
  const Page* of(std::size_t page) const { return pages_[page].load(std::memory_order_acquire); }
  void note(std::size_t page, Page values);

 private:
  std::vector<std::atomic<const Page*>> pages_;
};

// Can pages of this column have such values?
bool may_lie_plain(const ParquetColumn& column, ParquetCodec codec);
// Are the values of this page such, and large enough to be read one by one?
bool lie_plain(const PageHeader& header, std::uint64_t rows);
// Requires: they lie plain. packed: the page behind its header, whose values `rows` are.
ValuePlaces::Page places_of(const PageRows& rows, const PageHeader& header, std::span<const std::byte> packed);

}  // namespace feedline::format
