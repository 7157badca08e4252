// SPDX-License-Identifier: Apache-2.0
#pragma once

// The positions of values in pages that store byte strings uncompressed, without checksum or dictionary, as `datasets`
// stores photos. The first read of a page reads all of it and records the positions here; later reads fetch only their
// value, although a page may contain a megabyte of photos.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/parquet/page_header.h"
#include "format/parquet/page_rows.h"
#include "format/parquet/parquet_schema.h"

namespace feedline::format {

// Value positions in the pages of one column. Thread-safe.
class ValuePlaces {
 public:
  static constexpr std::uint32_t kNull = 0xffffffff;
  struct Value {
    std::uint32_t offset = 0, bytes = kNull;  // offset from the page's header; nulls have kNull bytes
  };
  using Page = std::vector<Value>;

  explicit ValuePlaces(std::size_t pages) : pages_(pages) {}
  ~ValuePlaces();
  ValuePlaces(const ValuePlaces&) = delete;
  ValuePlaces& operator=(const ValuePlaces&) = delete;

  // Returns the values of a page by row, or nullptr if none have been recorded. Valid as long as this object.
  const Page* of(std::size_t page) const { return pages_[page].load(std::memory_order_acquire); }
  void note(std::size_t page, Page values);

 private:
  std::vector<std::atomic<const Page*>> pages_;
};

// Returns whether pages of this column can have such values.
bool may_lie_plain(const ParquetColumn& column, ParquetCodec codec);
// Returns whether this page's values are stored this way, and are large enough to be read individually.
bool lie_plain(const PageHeader& header, std::uint64_t rows);
// Requires: lie_plain(). packed: the page after its header; its values are `rows`.
ValuePlaces::Page places_of(const PageRows& rows, const PageHeader& header, std::span<const std::byte> packed);

}  // namespace feedline::format
