// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where one field of one sample goes: straight into its place in a batch, or, where that is not known before the sample
// is read, into an item, which the batch takes in when it settles.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::memory {

// A row of a list, or of a padded field whose length shows once it is read. A slot keeps its items for the next batch,
// so that a row costs no allocation once the largest was seen. Not for several threads at once.
struct ListItem {
  ByteBuffer bytes;      // the first `size` of them
  Shape shape;           // of this row
  std::size_t size = 0;  // bytes
  bool absent = false;   // the sample has no such field (missing="none")

  // Room for a row of that shape, to be written to its end. Requires: a size of our own, which there is memory for.
  std::span<std::byte> take(const Shape& row, DType dtype);
  // The same, of a shape that a file claims: kData where it is over `most` bytes, or more than there is memory.
  Result<std::span<std::byte>> make_room(const Shape& row, DType dtype, std::uint64_t most);
  // A row of no elements; absent: that the sample does not have.
  void clear(bool is_absent = false);
};

struct Row {
  ArrayView view;            // dense: the place in the batch. Else its spec is the field's, and it has no data
  ListItem* item = nullptr;  // not nullptr: in place of the view
};

// A row of a field that was not copied; it ends with the last copy of `memory`.
struct OwnRow {
  std::shared_ptr<std::byte> memory;  // nullptr: there is none
  ArraySpec array;                    // with the extents that this row has
};
// What a row is for.
enum class RowUse : std::uint8_t {
  kCall,  // a call of a function, which may write to it
  kView,  // a call of a function that only reads it
  kKept,  // the user, who may write to it and keep it: later writes to the source must not change it
};

}  // namespace feedline::memory
