// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory layout of a batch: all fields and rows are in one allocation.
//
//   | field 0: row 0, row 1, ... | pad to kAlignment | field 1: row 0, row 1, ... | ...
//
// Padded fields and lists are not included: their rows are stored as items until the batch is complete (composed.h). If
// a field is computed from rows' classes, the class numbers follow all fields, contiguously. The input for a device
// follows the class numbers, if a device processes the batch. The device's output precedes all data that the host fills
// in.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "feedline/array.h"
#include "memory/allocator.h"
#include "memory/row.h"

namespace feedline::batch {

// One layout serves all batches with the same extents. Immutable and thread-safe. Batches hold a reference to their
// layout, because a Batch's field names point into it.
class BatchLayout {
 public:
  // targets: the field that is computed from classes, if any; rows_at() then returns the destination of the row's class
  // (int64) instead. extra_bytes: bytes reserved after all fields. Requires: no dense field is ragged; targets are
  // dense.
  BatchLayout(Schema schema, std::uint64_t rows, std::optional<std::size_t> targets = {}, std::size_t extra_bytes = 0);
  // Creates the device layout of a batch that was filled with the layout `filled`: first the fields that the device
  // computed, then the other fields. schema: describes the same fields. made: one entry per field, true if the device
  // computed it.
  BatchLayout(const BatchLayout& filled, Schema schema, const std::vector<bool>& made);

  std::size_t bytes() const { return bytes_; }  // dense fields and everything after them; 0 if there are none
  std::size_t fields_bytes() const { return fields_bytes_; }  // without anything after them
  std::size_t made_bytes() const { return made_bytes_; }      // output of a device, at the front
  std::size_t offset_of(std::size_t field) const { return offsets_[field]; }
  std::uint64_t sample_bytes() const;  // one row of every dense field, without alignment
  const Schema& schema() const { return schema_; }
  // Sets `rows` to views of one row of every field, for a batch at `data`; the views of variable-size fields have no
  // data. `rows` is reused.
  void row_views(std::byte* data, std::uint64_t row, std::vector<ArrayView>& rows) const;
  // Sets `rows` to the destination of one row of every field. items: the items of the whole batch; each row has one per
  // variable-size field. The items of this row are cleared. `rows` is reused.
  void rows_at(std::byte* data, std::span<memory::ListItem> items, std::uint64_t row,
               std::vector<memory::Row>& rows) const;
  // Indices of the variable-size fields (FieldSpec::has_variable_size).
  std::span<const std::size_t> variable_fields() const { return variable_; }
  // Returns the byte range [first, last) of the rows from `row` on in the largest dense field.
  std::pair<std::size_t, std::size_t> largest_field_from(std::uint64_t row) const;
  // Returns the class of every row. Requires: the layout has a field computed from classes.
  std::span<std::int64_t> classes(std::byte* data) const;
  // Returns a view of the first `rows` rows of a dense field.
  ArrayView field_view(std::byte* data, std::size_t field, std::uint64_t rows) const;

 private:
  ArrayView row_view(std::byte* data, std::size_t field, std::uint64_t row) const;

  Schema schema_;
  std::vector<std::size_t> offsets_;  // of the dense fields
  std::vector<std::size_t> variable_;
  std::size_t bytes_ = 0;
  std::size_t fields_bytes_ = 0;
  std::size_t made_bytes_ = 0;
  std::uint64_t rows_;
  std::optional<std::size_t> targets_;
  std::size_t classes_at_ = 0;
  std::size_t largest_ = 0;      // index of the dense field
  std::size_t largest_row_ = 0;  // its bytes; 0 if there is none
};

}  // namespace feedline::batch
