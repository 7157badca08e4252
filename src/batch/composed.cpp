// SPDX-License-Identifier: Apache-2.0
#include "batch/composed.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace feedline::batch {
namespace {

constexpr std::size_t kAlign = memory::Allocator::kAlignment;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Rounds up to one of eight sizes per power of two, so that blocks of similar batches can be reused. Returns at least
// the size of a page.
std::size_t block_bytes(std::size_t bytes) {
  constexpr std::size_t kLeast = 4096, kSteps = 8;
  const std::size_t step = std::bit_floor(std::max(bytes, kLeast)) / kSteps;
  return (std::max(bytes, kLeast) + step - 1) / step * step;
}

// Fills the bytes from `from` to `to` with copies of the padding element.
void pad(std::byte* from, std::byte* to, const Element& element, std::size_t element_bytes) {
  if (std::all_of(element.begin(), element.begin() + static_cast<std::ptrdiff_t>(element_bytes),
                  [&](std::byte byte) { return byte == element[0]; })) {
    std::memset(from, std::to_integer<int>(element[0]), static_cast<std::size_t>(to - from));
    return;
  }
  for (; from < to; from += element_bytes) std::memcpy(from, element.data(), element_bytes);
}

// Returns the length of a row of a padded field, or 0 if the row was cleared.
std::int64_t length_of(const memory::ListItem& item, const FieldSpec& spec) {
  return item.shape.dims() == spec.array.shape.dims() ? item.shape[spec.array.padded_axis()] : 0;
}

}  // namespace

Composed::Field Composed::measure_list(std::span<const memory::ListItem> items, std::size_t stride,
                                       std::uint64_t rows) {
  Field field;
  field.offsets.reserve(rows + 1);
  field.shapes.reserve(rows);
  field.offsets.push_back(0);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const memory::ListItem& item = items[row * stride];
    field.bytes += item.size;
    field.offsets.push_back(static_cast<std::int64_t>(field.bytes));
    field.shapes.push_back(item.shape);
  }
  return field;
}

Composed::Field Composed::measure_padded(const FieldSpec& spec, std::span<const memory::ListItem> items,
                                         std::size_t stride, std::uint64_t rows) {
  Field field;
  const std::size_t axis = spec.array.padded_axis();
  for (std::uint64_t row = 0; row < rows; ++row) {
    const memory::ListItem& item = items[row * stride];
    const std::int64_t length = length_of(item, spec);
    FEEDLINE_CHECK(item.size == 0 || item.shape == spec.array.shape.with_extent(axis, length));
    field.longest = std::max(field.longest, length);
  }
  const ArraySpec row{spec.array.dtype, spec.array.shape.with_extent(axis, field.longest)};
  FEEDLINE_CHECK(!__builtin_mul_overflow(row.bytes(), rows, &field.bytes));
  field.lengths_at = aligned(field.bytes);
  return field;
}

Result<Composed> Composed::make(const BatchLayout& layout, std::span<const memory::ListItem> items, std::uint64_t rows,
                                const Memory& memory) {
  Composed made;
  made.rows_ = rows;
  const auto variable = layout.variable_fields();
  const std::size_t stride = variable.size();
  std::size_t array_bytes = 0, word_bytes = 0;
  for (std::size_t k = 0; k < stride; ++k) {
    const FieldSpec& spec = layout.schema()[variable[k]];
    const bool is_padded = spec.form == BatchForm::kPadded;
    Field field =
        is_padded ? measure_padded(spec, items.subspan(k), stride, rows) : measure_list(items.subspan(k), stride, rows);
    field.is_words = spec.content != Content::kArray;
    std::size_t& end = field.is_words ? word_bytes : array_bytes;
    field.at = end;
    end += aligned(is_padded ? field.lengths_at + rows * sizeof(std::int64_t) : field.bytes);
    field.absent = std::make_unique<bool[]>(rows);
    for (std::uint64_t row = 0; row < rows; ++row) field.absent[row] = items[row * stride + k].absent;
    made.fields_.push_back(std::move(field));
  }
  made.bytes_ = array_bytes + word_bytes;
  const auto has = [&](bool words) {
    return std::ranges::any_of(made.fields_, [&](const Field& field) { return field.is_words == words; });
  };
  if (has(false)) {
    FEEDLINE_TRY(made.arrays_, memory::Lease::take(memory.arrays, block_bytes(array_bytes)));
  }
  if (has(true)) {
    FEEDLINE_TRY(made.words_, memory::Lease::take(memory.words, block_bytes(word_bytes)));
  }
  for (std::size_t k = 0; k < stride; ++k) made.copy(k, layout.schema()[variable[k]], items.subspan(k), stride);
  return made;
}

void Composed::copy(std::size_t k, const FieldSpec& spec, std::span<const memory::ListItem> items, std::size_t stride) {
  const Field& field = fields_[k];
  std::byte* to = begin_of(field);
  const bool is_padded = spec.form == BatchForm::kPadded;
  const std::size_t row_bytes = is_padded && rows_ > 0 ? field.bytes / rows_ : 0;
  std::size_t blocks = 1;
  for (std::size_t i = 0; is_padded && i < spec.array.padded_axis(); ++i)
    blocks *= static_cast<std::size_t>(spec.array.shape[i]);
  for (std::uint64_t row = 0; row < rows_; ++row) {
    const memory::ListItem& item = items[row * stride];
    if (!is_padded) {
      if (item.size > 0) std::memcpy(to, item.data(), item.size);
      to += item.size;
      continue;
    }
    // blocks: the channels of (channels, samples), or the whole row if the first extent is padded
    const std::size_t item_bytes = item.size / blocks, block_bytes = row_bytes / blocks;
    for (std::size_t block = 0; block < blocks; ++block, to += block_bytes) {
      if (item_bytes > 0) std::memcpy(to, item.data() + block * item_bytes, item_bytes);
      pad(to + item_bytes, to + block_bytes, spec.pad, size_of(spec.array.dtype));
    }
    const std::int64_t length = length_of(item, spec);
    std::memcpy(begin_of(field) + field.lengths_at + row * sizeof length, &length, sizeof length);
  }
}

BatchField Composed::field(std::size_t k, const FieldSpec& spec) const {
  const Field& field = fields_[k];
  const std::span<const bool> absent(field.absent.get(), rows_);
  std::byte* const data = begin_of(field);
  if (spec.form == BatchForm::kList)
    return {.name = spec.name,
            .array = {nullptr, spec.array},
            .form = spec.form,
            .content = spec.content,
            .buffer = {data, field.bytes},
            .offsets = field.offsets,
            .shapes = field.shapes,
            .absent = absent};
  const auto rows = static_cast<std::int64_t>(rows_);
  return {.name = spec.name,
          .array = {data,
                    {spec.array.dtype,
                     spec.array.shape.with_extent(spec.array.padded_axis(), field.longest).with_front(rows)}},
          .form = spec.form,
          .content = spec.content,
          .lengths = {data + field.lengths_at, {DType::kInt64, {rows}}},
          .absent = absent};
}

}  // namespace feedline::batch
