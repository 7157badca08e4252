// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "format/arrays/array_files.h"
#include "format/filled_format.h"

namespace feedline::format {

// Arrays in memory or in mapped files. Sample i is row i of each array. In a ragged array, a sample is several
// consecutive rows, and a second field has their number. Copies only the rows that are read.
class ArrayFormat final : public FilledFormat {
 public:
  // Fails with kConfig if there are no arrays, they have different numbers of samples, a sample has no elements, a name
  // is repeated, or offsets are invalid.
  static Result<std::shared_ptr<const RowFormat>> make(std::vector<NamedArray> arrays);

  std::string_view name() const override { return "arrays"; }
  std::uint64_t size() const override { return size_; }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::uint64_t length(std::uint64_t index, std::size_t field) const override;
  std::uint64_t longest(std::size_t field) const override { return longest_[array_of_[field]]; }
  Result<std::uint64_t> read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                      std::span<std::int64_t> out) const override;
  Where where(std::uint64_t index) const override;
  Result<memory::OwnRow> own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  explicit ArrayFormat(std::vector<NamedArray> arrays);
  // Reads rows of an array that is not ragged.
  Result<void> gather(std::size_t array, std::span<const std::uint64_t> samples, std::byte* out) const;

  std::vector<NamedArray> arrays_;
  ArrayFiles files_;
  std::vector<std::size_t> array_of_;   // by field
  std::vector<std::uint64_t> longest_;  // by array; 0 if it is not ragged
  std::uint64_t size_;
  std::uint64_t fingerprint_;
};

}  // namespace feedline::format
