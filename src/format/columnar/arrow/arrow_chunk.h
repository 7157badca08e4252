// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/arrow/arrow_buffers.h"
#include "format/columnar/column.h"
#include "format/columnar/column_table.h"
#include "format/index/opening_reader.h"
#include "storage/reader.h"

namespace feedline::format {

// A column in one batch. Holds its offsets and validity in memory, and also its values if they are single numbers.
// Immutable once loaded; thread-safe.
class ArrowChunk {
 public:
  enum class Held : std::uint8_t { kAllValues, kSingleNumbers, kNoValues };  // which values are read into memory
  // Loads the column from the array of its top-level field. `path` is ArrowColumn::path without the first element.
  // `values` is the dictionary of a dictionary-encoded column. `type` must outlive the chunk.
  static Result<ArrowChunk> load(const storage::Reader& reader, const ColumnType& type, const ArrowArray& array,
                                 std::span<const std::size_t> path, ArrowCodec codec, Held held,
                                 std::shared_ptr<const ArrowChunk> values);

  // Adds the byte ranges that load() reads, as far as the metadata determines them. Requires: not kAllValues.
  static void add_ranges(const ArrowArray& array, std::span<const std::size_t> path, Held held,
                         std::vector<ByteRange>& ranges);

  std::uint64_t rows() const { return rows_; }
  std::uint64_t width() const { return width_; }  // bytes per number
  bool has_nulls() const { return !masks_.empty() || values_ || is_nothing_; }
  // Returns the location of a row's value. Requires: row < rows(). Fails with kData if offsets are invalid or a list
  // contains a null.
  Result<CellLocation> location(std::uint64_t row) const;
  // Returns the buffer that contains the values or their views.
  const ArrowBuffer& data() const { return data_; }
  // Returns the buffer that contains a row's value. Requires: the location that location() returns for the row is not
  // in memory.
  const ArrowBuffer& buffer_of(std::uint64_t row) const;
  ArrowCodec codec() const { return codec_; }
  // The decompressed size of the buffers that are decompressed as a whole to read a value: of all
  // buffers, and of the one that holds a value, on average, according to the values' offsets. Zeros if there are none.
  struct PlainBytes {
    std::uint64_t all = 0, of_buffer = 0;
  };
  PlainBytes plain_bytes() const;
  // Returns all rows of the chunk as a run that begins with row 0, or nullopt if location() must locate each row. The
  // values are in `data`, the contents of data(), if they are not in memory.
  std::optional<NumberRun> numbers(std::span<const std::byte> data = {}) const;
  // Returns whether numbers() needs `data`, because the rows are lists of numbers, or numbers that are not in memory.
  bool needs_data() const { return has_lists() || (levels_.empty() && width_ > 0 && !is_held_); }
  bool has_lists() const { return !levels_.empty() && !is_binary_ && !is_view_; }
  // Single numbers without nulls are stored only as values, so those of all chunks can be joined. take_numbers()
  // returns them, and set_numbers() sets the memory that now contains them.
  bool are_only_numbers() const;
  std::vector<std::byte> take_numbers() { return std::exchange(held_, {}); }
  void set_numbers(std::span<const std::byte> numbers) { joined_ = numbers; }

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
  // A view of one value: its size, followed by its bytes or, for long values, by their first bytes, a buffer index and
  // an offset.
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
  Result<CellLocation> place_list(std::uint64_t row) const;
  Result<CellLocation> place_encoded(std::uint64_t row) const;
  View view_at(std::uint64_t row) const;
  Result<CellLocation> place_view(std::uint64_t row) const;
  CellLocation bytes_at(std::uint64_t begin, std::uint64_t end) const;
  std::unexpected<Error> at_data(std::unexpected<Error> error) const;
  std::unexpected<Error> damaged(const std::string& how) const;

  const ColumnType* type_ = nullptr;
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
  std::vector<std::byte> held_;        // the values, or their dictionary indices
  std::span<const std::byte> joined_;  // the values in the memory of the table, instead of held_
  // For views in held_: the buffers that they refer to, and the contents of these buffers if all values are in memory.
  bool is_view_ = false;
  std::vector<ArrowBuffer> buffers_;
  std::vector<std::vector<std::byte>> held_buffers_;
  bool is_signed_index_ = true;
  std::shared_ptr<const ArrowChunk> values_;
};

}  // namespace feedline::format
