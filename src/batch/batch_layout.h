// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where each field and row of a batch lies in one allocation:
//
//   | field 0: row 0, row 1, ... | pad to kAlignment | field 1: row 0, row 1, ... | ...
//
// Fields that are padded or lists have no place there: their rows are items until the batch settles (composed.h).
// Where a field is made of classes that rows are filled with, these lie behind all fields, one behind the other; behind
// these, what a device reads that makes something of the batch. What it makes lies in front of all that was filled.

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

// Of one batch, or of all that have the same extents. Immutable and thread-safe. Outlives no batch: a Batch's field
// names point into it, so batches hold it.
class BatchLayout {
 public:
  // targets: the field that is made of classes, if there is one; of a row's class, int64, is what rows_at() tells then.
  // extra_bytes: behind all fields. Requires: no dense field is ragged; targets are dense.
  BatchLayout(Schema schema, std::uint64_t batch_size, std::optional<std::size_t> targets = {},
              std::size_t extra_bytes = 0);
  // Of what a device has, of a batch that was filled so: the fields that it made, in front, and the others. schema: the
  // same fields. made: which are made; as many as there are fields.
  BatchLayout(const BatchLayout& filled, Schema schema, const std::vector<bool>& made);

  std::size_t bytes() const { return bytes_; }  // of the dense fields and what is behind them; 0: there are none
  std::size_t fields_bytes() const { return fields_bytes_; }  // without what is behind them
  std::size_t made_bytes() const { return made_bytes_; }      // of what a device made, in front
  std::size_t offset_of(std::size_t field) const { return offsets_[field]; }
  std::uint64_t sample_bytes() const;  // of one row of every dense field, without what aligns them
  const Schema& schema() const { return schema_; }
  // Views of one row of every field, without data where it is late, for a batch at `data`. `rows` is reused.
  void row_views(std::byte* data, std::uint64_t row, std::vector<ArrayView>& rows) const;
  // Where one row of every field goes. items: of the whole batch, late_fields() for each row; those of this row are
  // cleared. `rows` is reused.
  void rows_at(std::byte* data, std::span<memory::ListItem> items, std::uint64_t row,
               std::vector<memory::Row>& rows) const;
  // Indices of the fields that are late (FieldSpec::is_late).
  std::span<const std::size_t> late_fields() const { return late_; }
  // Where rows from `row` on of the largest dense field lie: [first, last) bytes.
  std::pair<std::size_t, std::size_t> largest_field_from(std::uint64_t row) const;
  // The class of every row. Requires: a field is made of them.
  std::span<std::int64_t> classes(std::byte* data) const;
  // Views of the first `rows` rows of a dense field.
  ArrayView field_view(std::byte* data, std::size_t field, std::uint64_t rows) const;

 private:
  ArrayView place_of(std::byte* data, std::size_t field, std::uint64_t row) const;

  Schema schema_;
  std::vector<std::size_t> offsets_;  // of the dense fields
  std::vector<std::size_t> late_;
  std::size_t bytes_ = 0;
  std::size_t fields_bytes_ = 0;
  std::size_t made_bytes_ = 0;
  std::uint64_t batch_size_;
  std::optional<std::size_t> targets_;
  std::size_t classes_at_ = 0;
  std::size_t largest_ = 0;      // index of the dense field
  std::size_t largest_row_ = 0;  // its bytes; 0: there is none
};

}  // namespace feedline::batch
