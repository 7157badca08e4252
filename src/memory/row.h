// SPDX-License-Identifier: Apache-2.0
#pragma once

// The destination of one field of one sample: its final position in a batch or, if the position is not known before the
// sample is read, an item that is copied when the batch is complete.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::memory {

// A row of a list, or of a padded field, whose length is known only after reading. A slot reuses its items for the next
// batch, so rows need no allocation once the largest row has been read. Not thread-safe.
struct ListItem {
  ByteBuffer bytes;      // the first `size` of them, unless the row is lent
  Shape shape;           // of this row
  std::size_t size = 0;  // bytes
  bool absent = false;   // the sample has no such field (missing="none")

  // Returns memory for a row of that shape; the caller must fill it completely. Requires: a trusted size that fits in
  // memory.
  std::span<std::byte> take(const Shape& row, DType dtype);
  // Like take(), for a shape that a file claims: kData if it exceeds `most` bytes or the available memory.
  Result<std::span<std::byte>> make_room(const Shape& row, DType dtype, std::uint64_t most);
  // Refers to an array that will not change any more, instead of copying it.
  void lend(const ArrayView& row, std::shared_ptr<void> memory);
  void end_loan() { lent_ = nullptr; }
  const std::byte* data() const { return lent_ ? lent_data_ : bytes.data(); }  // `size` bytes
  std::size_t capacity() const { return lent_ ? bytes.capacity() + size : bytes.capacity(); }
  // Makes the row empty. is_absent: the sample does not have this field.
  void clear(bool is_absent = false);

 private:
  std::shared_ptr<void> lent_;  // owns lent_data_
  const std::byte* lent_data_ = nullptr;
};

struct Row {
  // For dense fields, the position in the batch; for other fields, a view with the field's spec and no data.
  ArrayView view;
  ListItem* item = nullptr;  // if not nullptr, used instead of the view
};

// A row of a field in its own memory, which is freed with the last copy of `memory`.
struct OwnRow {
  std::shared_ptr<std::byte> memory;  // nullptr if there is none
  ArraySpec array;                    // with this row's extents
};
// How the receiver may use a row.
enum class RowUse : std::uint8_t {
  kCall,  // a call to a function that may write to it
  kView,  // a call to a function that only reads it
  kKept,  // the user, who may write to it and retain it: later writes to the source must not change it
};

}  // namespace feedline::memory
