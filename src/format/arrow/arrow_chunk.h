// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/arrow/arrow_buffers.h"
#include "format/opening_reader.h"
#include "format/tables/column.h"
#include "storage/reader.h"

namespace feedline::format {

// A column in one batch. Stores in memory the data that locates its values, and the values themselves if they are
// single numbers. Immutable once loaded; thread-safe.
class ArrowChunk {
 public:
  // Requires: `array` is that of the column's top field; `path` is ArrowColumn's path without the first element.
  // `whole` reads all values into memory, whatever their type. `values`: the dictionary of an encoded column.
  static Result<ArrowChunk> load(const storage::Reader& reader, const ArrowArray& array,
                                 std::span<const std::size_t> path, ArrowCodec codec, bool whole,
                                 std::shared_ptr<const ArrowChunk> values);

  // Adds the ranges that load() reads without `whole`, as far as the metadata determines them.
  static void add_ranges(const ArrowArray& array, std::span<const std::size_t> path, std::vector<ByteRange>& ranges);

  std::uint64_t rows() const { return rows_; }
  bool has_nulls() const { return !masks_.empty() || values_ || is_nothing_; }
  // Requires: row < rows(). kData: invalid offsets, or a null inside a list.
  Result<CellPlace> place(std::uint64_t row) const;
  // The buffer that contains the values or their views.
  const ArrowBuffer& data() const { return data_; }
  // The buffer that contains a row's value. Requires: place() returned a location for the row that is not in memory.
  const ArrowBuffer& buffer_of(std::uint64_t row) const;
  ArrowCodec codec() const { return codec_; }

 private:
  // A validity bitmap; empty if all values are valid.
  using Mask = std::vector<std::byte>;
  // A level of lists that encloses the values.
  struct Level {
    std::vector<std::byte> offsets = {};  // empty if each list has `size` elements
    std::vector<std::byte> sizes = {};    // for list views: one for each offset
    std::uint64_t offset_bytes = 0;       // width of an offset, and of a size
    bool is_view = false;
    std::uint64_t size = 0;
    std::uint64_t length = 0;        // number of lists
    std::uint64_t inner_length = 0;  // number of elements of all lists
    std::vector<Mask> inner = {};    // validity of the elements: of structs in the lists, and of their members
  };
  // A view of one value: its size, then its bytes if they are few, else the first bytes, a buffer and an offset.
  struct View {
    static constexpr std::uint64_t kBytes = 16, kFewBytes = 12, kFewAt = 4, kBufferAt = 8, kOffsetAt = 12;
    std::int32_t bytes = 0, buffer = 0, offset = 0;
  };
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };
  struct Loader;

  bool is_null(std::uint64_t row) const;
  Result<Range> range_of(const Level& level, std::uint64_t list) const;
  Result<CellPlace> place_list(std::uint64_t row) const;
  Result<CellPlace> place_encoded(std::uint64_t row) const;
  View view_at(std::uint64_t row) const;
  Result<CellPlace> place_view(std::uint64_t row) const;
  CellPlace bytes_at(std::uint64_t begin, std::uint64_t end) const;
  std::unexpected<Error> damaged(const std::string& how) const;

  std::uint64_t rows_ = 0;
  bool is_nothing_ = false;
  std::vector<Mask> masks_;    // for the structs and the column itself
  std::vector<Level> levels_;  // for numbers, the lists; for byte strings, one level whose elements are bytes
  bool is_binary_ = false;
  std::uint64_t width_ = 0;   // bytes per value
  std::uint64_t length_ = 0;  // number of values in all lists
  ArrowBuffer data_;
  ArrowCodec codec_ = ArrowCodec::kNone;
  bool is_held_ = false;
  std::vector<std::byte> held_;  // the values, or their dictionary indices
  // If held_ has views: the buffers to which they point, and their bytes if all values are in memory.
  bool is_view_ = false;
  std::vector<ArrowBuffer> buffers_;
  std::vector<std::vector<std::byte>> held_buffers_;
  bool is_signed_index_ = true;
  std::shared_ptr<const ArrowChunk> values_;
};

}  // namespace feedline::format
