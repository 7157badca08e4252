// SPDX-License-Identifier: Apache-2.0
#pragma once

// The positions of values in pages that contain uncompressed byte strings and have no checksum or dictionary.
// `datasets` stores photos in such pages; each photo may take a megabyte. The first read of a page reads the whole page
// and records the positions; later reads fetch only one value.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/columnar/parquet/page_header.h"
#include "format/columnar/parquet/page_rows.h"
#include "format/columnar/parquet/parquet_schema.h"

namespace feedline::format {

// The positions of values in the pages of one column. Thread-safe.
class ValueLocations {
 public:
  static constexpr std::uint32_t kNull = 0xffffffff;
  struct Value {
    std::uint32_t offset = 0, bytes = kNull;  // offset from the page's header; nulls have kNull bytes
  };
  using Page = std::vector<Value>;

  explicit ValueLocations(std::size_t pages) : pages_(pages) {}
  ~ValueLocations();
  ValueLocations(const ValueLocations&) = delete;
  ValueLocations& operator=(const ValueLocations&) = delete;

  // Returns the values of a page by row, or nullptr if they have not been recorded. The result is valid as long as this
  // object exists.
  const Page* of(std::size_t page) const { return pages_[page].load(std::memory_order_acquire); }
  void note(std::size_t page, Page values);

 private:
  std::vector<std::atomic<const Page*>> pages_;
};

// Returns whether values in pages of this column can be read individually.
bool may_lie_plain(const ParquetColumn& column, ParquetCodec codec);
// Returns whether the values in this page can be read individually, and are large enough to make this worthwhile.
bool lie_plain(const PageHeader& header, std::uint64_t rows);
// Returns the positions of the values in a page. `packed` contains the bytes of the page after its header, and `rows`
// the decoded page. Requires: lie_plain().
ValueLocations::Page locations_of(const PageRows& rows, const PageHeader& header, std::span<const std::byte> packed);

}  // namespace feedline::format
