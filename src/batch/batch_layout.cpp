// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_layout.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace feedline::batch {

namespace {

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlign = memory::Allocator::kAlignment;
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

// A field whose rows have no elements needs memory too, because its array must point into the batch's memory.
std::size_t room_of(std::size_t field_bytes) { return aligned(std::max<std::size_t>(field_bytes, 1)); }

}  // namespace

BatchLayout::BatchLayout(Schema schema, std::uint64_t rows, std::optional<std::size_t> targets, std::size_t extra_bytes)
    : schema_(std::move(schema)), rows_(rows), targets_(targets) {
  FEEDLINE_CHECK(rows > 0);
  FEEDLINE_CHECK(!targets || !schema_[*targets].has_variable_size());
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    offsets_.push_back(bytes_);
    if (schema_[i].has_variable_size()) {
      variable_.push_back(i);
      continue;
    }
    const std::size_t row_bytes = schema_[i].array.bytes();
    std::size_t field_bytes = 0;
    FEEDLINE_CHECK(!__builtin_mul_overflow(row_bytes, rows, &field_bytes));
    if (row_bytes > largest_row_) largest_ = i, largest_row_ = row_bytes;
    bytes_ += room_of(field_bytes);
  }
  classes_at_ = bytes_;
  if (targets_) bytes_ += aligned(rows * sizeof(std::int64_t));
  fields_bytes_ = bytes_;
  bytes_ += aligned(extra_bytes);
}

BatchLayout::BatchLayout(const BatchLayout& filled, Schema schema, const std::vector<bool>& made)
    : schema_(std::move(schema)), variable_(filled.variable_), rows_(filled.rows_) {
  FEEDLINE_CHECK(schema_.size() == filled.schema_.size() && made.size() == schema_.size());
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    offsets_.push_back(made_bytes_);
    if (made[i]) made_bytes_ += room_of(schema_[i].array.bytes() * rows_);
  }
  for (std::size_t i = 0; i < schema_.size(); ++i)
    if (!made[i]) offsets_[i] = made_bytes_ + filled.offsets_[i];
  bytes_ = fields_bytes_ = made_bytes_ + filled.bytes_;
}

// Requires: the field is dense.
ArrayView BatchLayout::row_view(std::byte* data, std::size_t field, std::uint64_t row) const {
  if (field == targets_) return {data + classes_at_ + row * sizeof(std::int64_t), {DType::kInt64, {}}};
  return {data + offsets_[field] + row * schema_[field].array.bytes(), schema_[field].array};
}

std::span<std::int64_t> BatchLayout::classes(std::byte* data) const {
  FEEDLINE_CHECK(targets_);
  return {reinterpret_cast<std::int64_t*>(data + classes_at_), rows_};
}

std::uint64_t BatchLayout::sample_bytes() const {
  std::uint64_t bytes = 0;
  for (const FieldSpec& field : schema_)
    if (!field.has_variable_size()) bytes += field.array.bytes();
  return bytes;
}

void BatchLayout::row_views(std::byte* data, std::uint64_t row, std::vector<ArrayView>& rows) const {
  rows.resize(schema_.size());
  for (std::size_t i = 0; i < schema_.size(); ++i)
    rows[i] = schema_[i].has_variable_size() ? ArrayView{nullptr, schema_[i].array} : row_view(data, i, row);
}

void BatchLayout::rows_at(std::byte* data, std::span<memory::ListItem> items, std::uint64_t row,
                          std::vector<memory::Row>& rows) const {
  rows.resize(schema_.size());
  memory::ListItem* item = variable_.empty() ? nullptr : &items[row * variable_.size()];
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    const FieldSpec& field = schema_[i];
    if (field.has_variable_size()) {
      item->clear();
      rows[i] = {{nullptr, field.array}, item++};
    } else {
      rows[i] = {row_view(data, i, row)};
    }
  }
}

std::pair<std::size_t, std::size_t> BatchLayout::largest_field_from(std::uint64_t row) const {
  if (largest_row_ == 0) return {0, 0};
  return {offsets_[largest_] + row * largest_row_, offsets_[largest_] + rows_ * largest_row_};
}

ArrayView BatchLayout::field_view(std::byte* data, std::size_t field, std::uint64_t rows) const {
  const ArraySpec& spec = schema_[field].array;
  return {data + offsets_[field], {spec.dtype, spec.shape.with_front(static_cast<std::int64_t>(rows))}};
}

}  // namespace feedline::batch
