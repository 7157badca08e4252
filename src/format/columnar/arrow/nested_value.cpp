// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/nested_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace feedline::format {
namespace {

constexpr std::uint64_t kViewBytes = 16, kFewBytes = 12, kFewAt = 4, kBufferAt = 8, kOffsetAt = 12;

bool is_map(const ArrowField& field) { return is_list(field.layout) && !field.is_known && field.shown == "map"; }

class ArrayWriter {
 public:
  ArrayWriter(const BufferContents& contents, const NestedArray& nested, NestedWriter& writer)
      : buffers_(contents), codec_(nested.codec), dictionaries_(nested.dictionaries), writer_(writer) {}

  Result<bool> is_null(const ArrowArray& array, std::uint64_t i) const {
    if (i >= array.length) return damaged(array);
    if (array.field->layout == ArrowLayout::kNothing) return true;
    if (array.nulls == 0 || array.buffers.empty() || array.buffers.front().bytes == 0) return false;
    FEEDLINE_TRY(const auto mask, contents_(array.buffers.front()));
    if (i / 8 >= mask.size()) return damaged(array);
    return (std::to_integer<unsigned>(mask[i / 8]) >> (i % 8) & 1U) == 0;
  }

  // Returns false if the value is null.
  Result<bool> append(const ArrowArray& array, std::uint64_t i) {
    FEEDLINE_TRY(const bool nothing, is_null(array, i));
    if (nothing) return writer_.null(), false;
    if (array.field->dictionary) return append_encoded(array, i);
    switch (array.field->layout) {
      case ArrowLayout::kStruct:
        FEEDLINE_CHECK_OK(append_struct(array, i));
        break;
      case ArrowLayout::kBinary:
      case ArrowLayout::kLargeBinary:
      case ArrowLayout::kBinaryView:
        FEEDLINE_CHECK_OK(append_text(array, i));
        break;
      case ArrowLayout::kFixed:
        FEEDLINE_CHECK_OK(append_number(array, i));
        break;
      default:
        FEEDLINE_CHECK_OK(append_list(array, i));
    }
    return true;
  }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };

  static std::unexpected<Error> damaged(const ArrowArray& array) {
    auto error =
        data_error("a nested value exceeds its array: the file is damaged; copy or download it again", "format");
    if (!array.buffers.empty()) error.error().where.offset = array.buffers.front().offset;
    return error;
  }

  // Returns number `i` of `width` bytes in a buffer.
  Result<std::uint64_t> number(const ArrowArray& array, std::size_t buffer, std::uint64_t i,
                               std::uint64_t width) const {
    FEEDLINE_TRY(const auto bytes, contents_(array.buffers[buffer]));
    if (i >= bytes.size() / width) return damaged(array);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + i * width, width);
    return value;
  }

  Result<Range> range_of(const ArrowArray& array, std::uint64_t i) const {
    const ArrowLayout layout = array.field->layout;
    if (layout == ArrowLayout::kFixedList) return Range{i * array.field->list_size, (i + 1) * array.field->list_size};
    const bool is_wide = layout == ArrowLayout::kLargeList || layout == ArrowLayout::kLargeListView ||
                         layout == ArrowLayout::kLargeBinary;
    const std::uint64_t width = is_wide ? 8 : 4;
    FEEDLINE_TRY(const std::uint64_t begin, number(array, 1, i, width));
    if (layout == ArrowLayout::kListView || layout == ArrowLayout::kLargeListView) {
      FEEDLINE_TRY(const std::uint64_t size, number(array, 2, i, width));
      return Range{begin, begin + size};
    }
    FEEDLINE_TRY(const std::uint64_t end, number(array, 1, i + 1, width));
    return Range{begin, end};
  }

  Result<bool> append_encoded(const ArrowArray& array, std::uint64_t i) {
    const ArrowField& field = *array.field;
    FEEDLINE_TRY(const std::uint64_t index, number(array, 1, i, field.index_bytes));
    const std::uint64_t bits = 8 * field.index_bytes;
    if (field.is_signed_index && index >> (bits - 1) != 0) return damaged(array);
    const NestedDictionary& dictionary = *dictionaries_.at(*field.dictionary);
    const ArrowCodec codec = std::exchange(codec_, dictionary.body.codec);
    auto done = append(dictionary.body.arrays.front(), index);
    codec_ = codec;
    return done;
  }

  Result<std::span<const std::byte>> contents_(const ArrowBuffer& buffer) const { return buffers_(buffer, codec_); }

  Result<void> append_struct(const ArrowArray& array, std::uint64_t i) {
    writer_.begin_object();
    for (const ArrowArray& child : array.children) {
      FEEDLINE_CHECK_OK(writer_.key(std::as_bytes(std::span(child.field->name))));
      FEEDLINE_CHECK_OK(append(child, i));
    }
    writer_.end_object();
    return {};
  }

  Result<void> append_list(const ArrowArray& array, std::uint64_t i) {
    FEEDLINE_TRY(const Range range, range_of(array, i));
    const ArrowArray& child = array.children.front();
    if (range.begin > range.end || range.end > child.length) return damaged(array);
    const bool has_pairs = is_map(*array.field);
    has_pairs ? writer_.begin_object() : writer_.begin_list();
    for (std::uint64_t element = range.begin; element < range.end; ++element) {
      if (has_pairs) {
        FEEDLINE_TRY(const bool is_missing, is_null(child.children[0], element));
        if (is_missing) return damaged(array);
        FEEDLINE_TRY(const auto key, text_at(child.children[0], element));
        FEEDLINE_CHECK_OK(writer_.key(key));
      }
      FEEDLINE_CHECK_OK(append(has_pairs ? child.children[1] : child, element));
    }
    has_pairs ? writer_.end_object() : writer_.end_list();
    return {};
  }

  Result<void> append_text(const ArrowArray& array, std::uint64_t i) {
    FEEDLINE_TRY(const auto bytes, text_at(array, i));
    if (array.field->is_text) return writer_.text(bytes);
    writer_.bytes(bytes);
    return {};
  }

  Result<std::span<const std::byte>> text_at(const ArrowArray& array, std::uint64_t i) const {
    if (array.field->layout == ArrowLayout::kBinaryView) return view_at(array, i);
    FEEDLINE_TRY(const Range range, range_of(array, i));
    return part_of(array, 2, range.begin, range.end - range.begin);
  }

  Result<std::span<const std::byte>> part_of(const ArrowArray& array, std::size_t buffer, std::uint64_t begin,
                                             std::uint64_t bytes) const {
    if (bytes == 0) return std::span<const std::byte>();
    if (buffer >= array.buffers.size()) return damaged(array);
    FEEDLINE_TRY(const auto text, contents_(array.buffers[buffer]));
    if (begin > text.size() || bytes > text.size() - begin) return damaged(array);
    return text.subspan(begin, bytes);
  }

  Result<std::span<const std::byte>> view_at(const ArrowArray& array, std::uint64_t i) const {
    FEEDLINE_TRY(const auto views, contents_(array.buffers[1]));
    if (i >= views.size() / kViewBytes) return damaged(array);
    const auto view = views.subspan(i * kViewBytes, kViewBytes);
    const auto part = [&](std::uint64_t at) {
      std::uint32_t value = 0;
      std::memcpy(&value, view.data() + at, sizeof value);
      return value;
    };
    const std::uint32_t bytes = part(0);
    if (bytes <= kFewBytes) return view.subspan(kFewAt, bytes);
    return part_of(array, std::size_t{2} + part(kBufferAt), part(kOffsetAt), bytes);
  }

  Result<void> append_number(const ArrowArray& array, std::uint64_t i) {
    FEEDLINE_TRY(const auto bytes, contents_(array.buffers[1]));
    if (array.field->bits == 1) {
      if (i / 8 >= bytes.size()) return damaged(array);
      const std::byte flag{static_cast<unsigned char>(std::to_integer<unsigned>(bytes[i / 8]) >> (i % 8) & 1U)};
      writer_.number(DType::kBool, {&flag, 1});
      return {};
    }
    const std::uint64_t width = array.field->bits / 8;
    if (i >= bytes.size() / width) return damaged(array);
    writer_.number(*array.field->dtype, bytes.subspan(i * width, width));
    return {};
  }

  const BufferContents& buffers_;
  ArrowCodec codec_;  // of the array that is read
  const NestedDictionaries& dictionaries_;
  NestedWriter& writer_;
};

}  // namespace

bool may_be_nested(const ArrowField& field) {
  switch (field.layout) {
    case ArrowLayout::kNothing:
      return field.is_known;
    case ArrowLayout::kFixed:
      return field.is_known && field.dtype.has_value();
    case ArrowLayout::kBinary:
    case ArrowLayout::kLargeBinary:
    case ArrowLayout::kBinaryView:
      return true;
    case ArrowLayout::kStruct:
      return std::ranges::all_of(field.children, may_be_nested);
    default:
      break;
  }
  if (!is_list(field.layout) || field.children.size() != 1) return false;
  const ArrowField& child = field.children.front();
  if (!is_map(field)) return field.is_known && may_be_nested(child);
  return child.layout == ArrowLayout::kStruct && child.children.size() == 2 && child.children[0].is_text &&
         !child.children[0].dictionary && may_be_nested(child);
}

bool has_bytes(const ArrowField& field) {
  return (is_binary(field.layout) && !field.is_text) || std::ranges::any_of(field.children, has_bytes);
}

Result<bool> write_nested(const NestedArray& nested, std::span<const std::size_t> path, std::uint64_t row,
                          const BufferContents& contents, NestedWriter& nested_writer) {
  ArrayWriter writer(contents, nested, nested_writer);
  const ArrowArray* at = &nested.array;
  for (const std::size_t step : path) {
    FEEDLINE_TRY(const bool is_null, writer.is_null(*at, row));
    if (is_null) return false;
    at = &at->children[step];
  }
  return writer.append(*at, row);
}

void for_each_buffer(const ArrowArray& array, const std::function<void(const ArrowBuffer& buffer)>& use) {
  for (std::size_t i = array.nulls == 0 ? 1 : 0; i < array.buffers.size(); ++i)
    if (array.buffers[i].bytes > 0) use(array.buffers[i]);
  for (const ArrowArray& child : array.children) for_each_buffer(child, use);
}

}  // namespace feedline::format
