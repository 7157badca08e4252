// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where each field and row of a batch lies in one allocation:
//
//   | field 0: row 0, row 1, ... | pad to kAlignment | field 1: row 0, row 1, ... | ...

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "feedline/array.h"
#include "feedline/loader.h"
#include "memory/allocator.h"

namespace feedline::batch {

// Of one batch, or of all that have the same extents. Immutable and thread-safe. Outlives no batch: a Batch's field
// names point into it, so batches hold it.
class BatchLayout {
 public:
  BatchLayout(Schema schema, std::uint64_t batch_size);  // Requires: no field is ragged

  std::size_t bytes() const { return bytes_; }
  std::uint64_t sample_bytes() const;  // of one row of every field, without what aligns them
  const Schema& schema() const { return schema_; }
  // Views of one row of every field, for a batch at `data`. `rows` is reused.
  void row_views(std::byte* data, std::uint64_t row, std::vector<ArrayView>& rows) const;
  // Where rows from `row` on of the largest field lie: [first, last) bytes.
  std::pair<std::size_t, std::size_t> largest_field_from(std::uint64_t row) const;
  // Views of the first `rows` rows of a field.
  ArrayView field_view(std::byte* data, std::size_t field, std::uint64_t rows) const;

 private:
  Schema schema_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
  std::uint64_t batch_size_;
  std::size_t largest_ = 0;  // index of the field
};

// A complete batch for the user, but for the rows in `bad`: `lease` and `layout` live as long as its memory is held.
Batch make_batch(std::shared_ptr<const BatchLayout> layout, std::shared_ptr<memory::Lease> lease, std::uint64_t index,
                 std::vector<std::uint64_t> samples, std::vector<BadRow> bad = {});

}  // namespace feedline::batch
