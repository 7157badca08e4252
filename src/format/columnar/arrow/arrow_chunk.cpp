// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_chunk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kUnknown = std::uint64_t{1} << 48;  // number of values while they are compressed

bool bit(std::span<const std::byte> mask, std::uint64_t i) {
  return (std::to_integer<unsigned>(mask[i / 8]) >> (i % 8) & 1U) != 0;
}

std::uint64_t number(std::span<const std::byte> bytes, std::uint64_t i, std::uint64_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + i * width, width);
  return value;
}

bool is_wide(ArrowLayout layout) {
  return layout == ArrowLayout::kLargeList || layout == ArrowLayout::kLargeBinary ||
         layout == ArrowLayout::kLargeListView;
}

bool is_list_view(ArrowLayout layout) {
  return layout == ArrowLayout::kListView || layout == ArrowLayout::kLargeListView;
}

}  // namespace

// Descends from the top field to the values.
struct ArrowChunk::Loader {
  const storage::Reader& reader;
  ArrowCodec codec;
  ArrowChunk& chunk;

  static std::unexpected<Error> damaged(const ArrowBuffer& buffer, const std::string& how) {
    auto error = data_error(how + ": the file is damaged; copy or download it again", "format");
    error.error().where.offset = buffer.offset;
    return error;
  }

  Result<Mask> mask(const ArrowArray& array) const {
    if (array.nulls == 0 || array.buffers.empty()) return Mask();
    FEEDLINE_TRY(Mask made, read_arrow_buffer(reader, array.buffers.front(), codec));
    if (made.size() < (array.length + 7) / 8)
      return damaged(array.buffers.front(), "a validity bitmap is shorter than its column");
    return made;
  }

  // Loads the validity of the rows, or of the elements of the enclosing lists.
  Result<void> add_mask(const ArrowArray& array) {
    FEEDLINE_TRY(Mask made, mask(array));
    if (!made.empty()) (chunk.levels_.empty() ? chunk.masks_ : chunk.levels_.back().inner).push_back(std::move(made));
    return {};
  }

  // Loads `count` numbers of `width` bytes each.
  Result<std::vector<std::byte>> numbers(const ArrowBuffer& buffer, std::uint64_t count, std::uint64_t width) const {
    FEEDLINE_TRY(auto made, read_arrow_buffer(reader, buffer, codec));
    if (made.size() / width < count) return damaged(buffer, "there are fewer offsets than values");
    return made;
  }

  Result<std::vector<std::byte>> offsets(const ArrowArray& array, std::uint64_t width) const {
    return numbers(array.buffers[1], array.length == 0 ? 0 : array.length + 1, width);
  }

  // Returns the array of the list's elements.
  Result<const ArrowArray*> add_list(const ArrowArray& array) {
    const ArrowArray& child = array.children.front();
    const ArrowLayout layout = array.field->layout;
    Level level{.length = array.length, .inner_length = child.length};
    if (layout == ArrowLayout::kFixedList) {
      level.size = array.field->list_size;
      if (level.size > 0 && array.length > child.length / level.size)
        return damaged(array.buffers.front(), "lists have more elements than are stored");
    } else {
      level.offset_bytes = is_wide(layout) ? 8 : 4;
      level.is_view = is_list_view(layout);
    }
    if (level.is_view) {
      FEEDLINE_TRY(level.offsets, numbers(array.buffers[1], array.length, level.offset_bytes));
      FEEDLINE_TRY(level.sizes, numbers(array.buffers[2], array.length, level.offset_bytes));
    } else if (level.offset_bytes > 0) {
      FEEDLINE_TRY(level.offsets, offsets(array, level.offset_bytes));
    }
    chunk.levels_.push_back(std::move(level));
    return &child;
  }

  Result<void> add_views(const ArrowArray& array, bool whole) {
    chunk.is_view_ = true;
    chunk.data_ = array.buffers[1];
    chunk.codec_ = codec;
    chunk.length_ = array.length;
    FEEDLINE_TRY(chunk.held_, numbers(array.buffers[1], array.length, View::kBytes));
    chunk.buffers_.assign(array.buffers.begin() + 2, array.buffers.end());
    for (std::size_t i = 0; whole && i < chunk.buffers_.size(); ++i) {
      FEEDLINE_TRY(chunk.held_buffers_.emplace_back(), read_arrow_buffer(reader, chunk.buffers_[i], codec));
    }
    return {};
  }

  Result<void> add_binary(const ArrowArray& array, bool whole) {
    Level level{.length = array.length};
    level.offset_bytes = is_wide(array.field->layout) ? 8 : 4;
    FEEDLINE_TRY(level.offsets, offsets(array, level.offset_bytes));
    chunk.levels_.push_back(std::move(level));
    chunk.is_binary_ = true;
    chunk.width_ = 1;
    chunk.length_ = codec == ArrowCodec::kNone ? array.buffers[2].bytes : kUnknown;
    return set_data(array.buffers[2], whole);
  }

  Result<void> add_values(const ArrowArray& array, Held held) {
    chunk.length_ = array.length;
    if (array.field->bits == 1) {
      FEEDLINE_TRY(const auto bits, read_arrow_buffer(reader, array.buffers[1], codec));
      if (bits.size() < (array.length + 7) / 8) return damaged(array.buffers[1], "there are fewer values than rows");
      chunk.width_ = 1;
      chunk.is_held_ = true;
      chunk.data_ = array.buffers[1];
      chunk.held_.resize(array.length);
      for (std::uint64_t i = 0; i < array.length; ++i) chunk.held_[i] = std::byte{bit(bits, i)};
      return {};
    }
    chunk.width_ = array.field->bits / 8;
    if (codec == ArrowCodec::kNone && array.buffers[1].bytes / chunk.width_ < array.length)
      return damaged(array.buffers[1], "there are fewer values than rows");
    const bool is_number = chunk.levels_.empty() && array.field->dtype.has_value();
    return set_data(array.buffers[1], held == Held::kAllValues || (held == Held::kSingleNumbers && is_number));
  }

  Result<void> set_data(const ArrowBuffer& buffer, bool held) {
    chunk.data_ = buffer;
    chunk.codec_ = codec;
    if (!held) return {};
    FEEDLINE_TRY(chunk.held_, read_arrow_buffer(reader, buffer, codec));
    chunk.is_held_ = true;
    if (chunk.is_binary_) chunk.length_ = chunk.held_.size();
    if (chunk.held_.size() / chunk.width_ < chunk.length_) return damaged(buffer, "there are fewer values than rows");
    return {};
  }

  Result<void> load(const ArrowArray& top, std::span<const std::size_t> path, Held held) {
    const bool whole = held == Held::kAllValues;
    const ArrowArray* at = &top;
    chunk.rows_ = top.length;
    for (const std::size_t step : path) {
      FEEDLINE_CHECK_OK(add_mask(*at));
      if (is_list(at->field->layout)) {
        FEEDLINE_TRY(at, add_list(*at));
        continue;
      }
      const std::uint64_t length = at->length;
      at = &at->children[step];
      if (at->length < length)
        return damaged(chunk.data_, "a member of a struct has " + std::to_string(at->length) + " values for " +
                                        std::to_string(length) + " structs");
    }
    FEEDLINE_CHECK_OK(add_mask(*at));
    if (at->field->dictionary) {
      chunk.width_ = at->field->index_bytes;
      chunk.is_signed_index_ = at->field->is_signed_index;
      chunk.length_ = at->length;
      return set_data(at->buffers[1], true);
    }
    while (is_list(at->field->layout)) {
      FEEDLINE_TRY(at, add_list(*at));
      FEEDLINE_CHECK_OK(add_mask(*at));
    }
    switch (at->field->layout) {
      case ArrowLayout::kNothing:
        return chunk.is_nothing_ = true, Result<void>();
      case ArrowLayout::kBinary:
      case ArrowLayout::kLargeBinary:
        return add_binary(*at, whole);
      case ArrowLayout::kBinaryView:
        return add_views(*at, whole);
      case ArrowLayout::kFixed:
        return add_values(*at, held);
      default:
        return config_error("a column of " + at->field->shown + " cannot be a field");
    }
  }
};

Result<ArrowChunk> ArrowChunk::load(const storage::Reader& reader, const ColumnType& type, const ArrowArray& array,
                                    std::span<const std::size_t> path, ArrowCodec codec, Held held,
                                    std::shared_ptr<const ArrowChunk> values) {
  ArrowChunk chunk;
  chunk.type_ = &type;
  chunk.values_ = std::move(values);
  FEEDLINE_CHECK_OK((Loader{reader, codec, chunk}.load(array, path, held)));
  return chunk;
}

void ArrowChunk::add_ranges(const ArrowArray& array, std::span<const std::size_t> path, Held held,
                            std::vector<ByteRange>& ranges) {
  const auto add = [&](const ArrowArray& of, std::size_t buffer) {
    if (buffer < of.buffers.size() && of.buffers[buffer].bytes > 0)
      ranges.push_back({of.buffers[buffer].offset, of.buffers[buffer].bytes});
  };
  const ArrowArray* at = &array;
  bool is_inside = false;
  const auto enter_list = [&] {
    if (at->field->layout != ArrowLayout::kFixedList) add(*at, 1);
    if (is_list_view(at->field->layout)) add(*at, 2);
    at = &at->children.front();
    is_inside = true;
  };
  const auto add_mask = [&] {
    if (at->nulls > 0) add(*at, 0);
  };
  for (const std::size_t step : path) {
    add_mask();
    if (is_list(at->field->layout))
      enter_list();
    else
      at = &at->children[step];
  }
  add_mask();
  if (at->field->dictionary) return add(*at, 1);
  while (is_list(at->field->layout)) {
    enter_list();
    add_mask();
  }
  const bool is_number = at->field->layout == ArrowLayout::kFixed && at->field->dtype.has_value() && !is_inside;
  if (is_binary(at->field->layout) || (is_number && held == Held::kSingleNumbers)) add(*at, 1);
}

std::unexpected<Error> ArrowChunk::at_data(std::unexpected<Error> error) const {
  error.error().where.offset = data_.offset;
  return error;
}

std::unexpected<Error> ArrowChunk::damaged(const std::string& how) const { return at_data(data_error(how, "format")); }

bool ArrowChunk::is_null(std::uint64_t row) const {
  for (const Mask& mask : masks_)
    if (!bit(mask, row)) return true;
  return is_nothing_;
}

bool ArrowChunk::are_only_numbers() const {
  return is_held_ && !is_view_ && !is_binary_ && !values_ && levels_.empty() && masks_.empty();
}

// The buffers of views have no offsets: their stored size is used.
ArrowChunk::PlainBytes ArrowChunk::plain_bytes() const {
  if (codec_ == ArrowCodec::kNone || (is_held_ && !is_view_)) return {};
  if (is_view_) {
    std::uint64_t all = 0;
    for (const ArrowBuffer& buffer : buffers_) all += buffer.bytes;
    return {all, all / std::max<std::uint64_t>(buffers_.size(), 1)};
  }
  std::uint64_t values = rows_;
  for (const Level& level : levels_) {
    if (level.is_view)
      values = level.inner_length;
    else if (level.offset_bytes == 0)
      values = level.length * level.size;
    else if (level.offsets.size() / level.offset_bytes > level.length)
      values = number(level.offsets, level.length, level.offset_bytes);
  }
  const std::uint64_t bytes = values > kUnknown ? data_.bytes : values * width_;  // offsets may be damaged
  return {bytes, bytes};
}

std::optional<NumberRun> ArrowChunk::numbers(std::span<const std::byte> data) const {
  if (is_view_ || is_binary_ || values_ || is_nothing_ || masks_.size() > 1 || levels_.size() > 1) return std::nullopt;
  NumberRun run{.begin = 0, .end = rows_, .values = data};
  if (is_held_) run.values = joined_.empty() ? held_ : joined_;
  if (!masks_.empty()) run.valid = masks_.front();
  if (levels_.empty()) return run.values.size() / width_ >= rows_ ? std::optional(run) : std::nullopt;
  const Level& level = levels_.front();
  if (!level.inner.empty() || level.is_view || level.offset_bytes == sizeof(std::uint64_t)) return std::nullopt;
  run.elements = level.size;
  if (level.offset_bytes > 0)
    run.list_begins = {reinterpret_cast<const std::uint32_t*>(level.offsets.data()), level.offsets.size() / 4};
  return run;
}

Result<ArrowChunk::Range> ArrowChunk::range_of(const Level& level, std::uint64_t list) const {
  if (level.offset_bytes == 0) return Range{list * level.size, (list + 1) * level.size};
  if (level.is_view) {
    const std::uint64_t begin = number(level.offsets, list, level.offset_bytes);
    const std::uint64_t size = number(level.sizes, list, level.offset_bytes);
    if (begin > level.inner_length || size > level.inner_length - begin)
      return damaged("a list extends beyond its elements: the file is damaged");
    return Range{begin, begin + size};
  }
  const Range range{number(level.offsets, list, level.offset_bytes),
                    number(level.offsets, list + 1, level.offset_bytes)};
  if (range.begin > range.end) return damaged("the offsets are not in order: the file is damaged");
  return range;
}

// The elements of nested lists become rows of an array, so the inner lists must have equal lengths.
Result<CellLocation> ArrowChunk::place_list(std::uint64_t row) const {
  Range range{row, row + 1};
  Shape shape;
  std::array<std::int64_t, Shape::kMaxDims> extents{};
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    if (range.end > level.length) return damaged("the offsets point past the values: the file is damaged");
    if (range.begin == range.end) {
      extents[i] = static_cast<std::int64_t>(level.size);
      range = {};
      continue;
    }
    FEEDLINE_TRY(const Range first, range_of(level, range.begin));
    Range all = first;
    for (std::uint64_t list = range.begin + 1; list < range.end; ++list) {
      FEEDLINE_TRY(const Range next, range_of(level, list));
      if (next.end - next.begin != first.end - first.begin)
        return at_data(not_an_array(*type_, "the inner lists have " + std::to_string(first.end - first.begin) +
                                                " and " + std::to_string(next.end - next.begin) +
                                                " elements, so they are not rows of one array"));
      if (next.begin != next.end && next.begin != all.end)
        return at_data(not_an_array(*type_, "the inner lists are not stored consecutively"));
      all.end = next.end;
    }
    extents[i] = static_cast<std::int64_t>(first.end - first.begin);
    const std::uint64_t below = i + 1 < levels_.size() ? levels_[i + 1].length : length_;
    if (all.end > std::min(below, level.inner_length))
      return damaged("the offsets point past the values: the file is damaged");
    for (const Mask& mask : level.inner)
      for (std::uint64_t element = all.begin; element < all.end; ++element)
        if (!bit(mask, element))
          return at_data(not_an_array(*type_, "a list contains a null value, which arrays cannot represent"));
    range = all;
  }
  for (std::size_t i = levels_.size(); i-- > 0;) shape = shape.with_front(extents[i]);
  CellLocation location = bytes_at(range.begin * width_, range.end * width_);
  location.shape = shape;
  return location;
}

Result<CellLocation> ArrowChunk::place_encoded(std::uint64_t row) const {
  const std::uint64_t index = number(held_, row, width_);
  // a negative index is too large as an unsigned number of any width
  if (index >= values_->rows() || (is_signed_index_ && width_ < 8 && index >> (8 * width_ - 1) != 0))
    return damaged("the dictionary index " + std::to_string(index) + " is not below " +
                   std::to_string(values_->rows()));
  return values_->location(index);
}

CellLocation ArrowChunk::bytes_at(std::uint64_t begin, std::uint64_t end) const {
  const std::span<const std::byte> held = joined_.empty() ? held_ : joined_;
  if (is_held_) return {.in = CellLocation::In::kMemory, .held = held.subspan(begin, end - begin)};
  if (codec_ != ArrowCodec::kNone) return {.in = CellLocation::In::kPacked, .offset = begin, .bytes = end - begin};
  return {.in = CellLocation::In::kFile, .offset = data_.offset + begin, .bytes = end - begin};
}

ArrowChunk::View ArrowChunk::view_at(std::uint64_t row) const {
  const std::byte* const at = held_.data() + row * View::kBytes;
  View view;
  std::memcpy(&view.bytes, at, sizeof view.bytes);
  std::memcpy(&view.buffer, at + View::kBufferAt, sizeof view.buffer);
  std::memcpy(&view.offset, at + View::kOffsetAt, sizeof view.offset);
  return view;
}

const ArrowBuffer& ArrowChunk::buffer_of(std::uint64_t row) const {
  return is_view_ ? buffers_[static_cast<std::size_t>(view_at(row).buffer)] : data_;
}

Result<CellLocation> ArrowChunk::place_view(std::uint64_t row) const {
  const View view = view_at(row);
  if (view.bytes < 0) return damaged("a view has a negative size: the file is damaged");
  const auto bytes = static_cast<std::uint64_t>(view.bytes);
  if (bytes <= View::kFewBytes)
    return CellLocation{.in = CellLocation::In::kMemory,
                        .held = std::span(held_).subspan(row * View::kBytes + View::kFewAt, bytes)};
  if (view.buffer < 0 || std::cmp_greater_equal(view.buffer, buffers_.size()) || view.offset < 0)
    return damaged("a view points into buffer " + std::to_string(view.buffer) + " of " +
                   std::to_string(buffers_.size()) + " at byte " + std::to_string(view.offset) +
                   ": the file is damaged");
  const auto number = static_cast<std::size_t>(view.buffer);
  const auto offset = static_cast<std::uint64_t>(view.offset);
  const bool is_held = !held_buffers_.empty();
  // the size of a compressed buffer is checked after it is decompressed
  const std::uint64_t size = is_held                       ? held_buffers_[number].size()
                             : codec_ == ArrowCodec::kNone ? buffers_[number].bytes
                                                           : kUnknown;
  if (offset > size || bytes > size - offset)
    return damaged("a view points past the end of its buffer: the file is damaged");
  if (is_held)
    return CellLocation{.in = CellLocation::In::kMemory,
                        .held = std::span(held_buffers_[number]).subspan(offset, bytes)};
  if (codec_ != ArrowCodec::kNone)
    return CellLocation{.in = CellLocation::In::kPacked, .offset = offset, .bytes = bytes};
  return CellLocation{.in = CellLocation::In::kFile, .offset = buffers_[number].offset + offset, .bytes = bytes};
}

Result<CellLocation> ArrowChunk::location(std::uint64_t row) const {
  FEEDLINE_CHECK(row < rows_);
  if (is_null(row)) return CellLocation{};
  if (is_view_) return place_view(row);
  if (values_) return place_encoded(row);
  if (levels_.empty()) return bytes_at(row * width_, (row + 1) * width_);
  if (!is_binary_) return place_list(row);
  FEEDLINE_TRY(const Range range, range_of(levels_.front(), row));
  if (range.end > length_) return damaged("the offsets point past the end of the bytes: the file is damaged");
  return bytes_at(range.begin, range.end);
}

}  // namespace feedline::format
