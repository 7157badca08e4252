// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a batch that can be laid out only once all rows exist: padded fields and lists, composed from the rows'
// items.
//
//   arrays   | padded: row 0 to the longest, row 1, ... | its lengths | list of arrays: row 0, row 1, ... | ...
//   words    | list of bytes, text or JSON: row 0, row 1, ... | ...
//
// Each field begins at a multiple of kAlignment. Arrays are copied to the batch's device; words stay on the host, where
// Python creates objects from them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/batch_layout.h"
#include "feedline/error.h"
#include "feedline/loader.h"
#include "memory/allocator.h"
#include "memory/row.h"

namespace feedline::batch {

class Composed {
 public:
  struct Memory {
    std::shared_ptr<memory::Allocator> arrays, words;
  };
  // Composes the first `rows` rows of a batch with this layout. The result does not depend on the calling thread.
  // Returns an error if memory runs out. Requires: an item of a padded field has the field's shape, except for the
  // first extent.
  static Result<Composed> make(const BatchLayout& layout, std::span<const memory::ListItem> items, std::uint64_t rows,
                               const Memory& memory);
  Composed() = default;  // for a batch without variable-size fields

  std::size_t bytes() const { return bytes_; }
  // nullptr if there are no arrays.
  const std::shared_ptr<memory::Lease>& arrays() const { return arrays_; }
  // set_arrays() must receive the same bytes, but they may be in other memory.
  std::shared_ptr<memory::Lease> take_arrays() { return std::move(arrays_); }
  void set_arrays(std::shared_ptr<memory::Lease> arrays) { arrays_ = std::move(arrays); }
  // Returns variable-size field k, in the order of BatchLayout::variable_fields(), with spec `field`. The result is
  // valid as long as this object exists, even if this object is moved.
  BatchField field(std::size_t k, const FieldSpec& field) const;

 private:
  struct Field {
    bool is_words = false;
    std::size_t at = 0, bytes = 0, lengths_at = 0;  // in its block
    std::int64_t longest = 0;
    std::vector<std::int64_t> offsets;
    std::vector<Shape> shapes;
    std::unique_ptr<bool[]> absent;  // std::vector<bool> has no span
  };
  static Field measure_list(std::span<const memory::ListItem> items, std::size_t stride, std::uint64_t rows);
  static Field measure_padded(const FieldSpec& spec, std::span<const memory::ListItem> items, std::size_t stride,
                              std::uint64_t rows);
  void copy(std::size_t k, const FieldSpec& spec, std::span<const memory::ListItem> items, std::size_t stride);
  std::byte* begin_of(const Field& field) const { return (field.is_words ? words_ : arrays_)->data() + field.at; }

  std::vector<Field> fields_;
  std::uint64_t rows_ = 0;
  std::size_t bytes_ = 0;
  std::shared_ptr<memory::Lease> arrays_, words_;
};

}  // namespace feedline::batch
