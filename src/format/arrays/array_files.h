// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files that arrays are mapped from: provides rows without a copy, and an error instead of SIGBUS for a truncated
// file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "format/format.h"
#include "storage/backing_file.h"

namespace feedline::format {

// Rows of at least this size are read into batches by pread(2), whose calls then add little to the cost of a copy.
inline constexpr std::size_t kLargeRowBytes = std::size_t{1} << 20;
// Rows of at least this size are mapped for a function or a sample. Compared with a copy, a crop takes as long at 1 MiB
// and a tenth as long at 16 MiB; but writing to a whole mapped row takes four times as long as copying and writing.
inline constexpr std::size_t kMappedRowBytes = std::size_t{4} << 20;

// Immutable and thread-safe.
class ArrayFiles {
 public:
  // The arrays' memory must outlive this object.
  explicit ArrayFiles(std::span<const NamedArray> arrays);

  // Checks the size of each file once. kStorage: a file is shorter than its arrays need.
  Result<void> check() const;
  // nullptr if the array is not in a file.
  const storage::BackingFile* of(std::size_t array) const { return files_[array].get(); }
  // See Format::own_row(). Returns sample `index` of `array`, which has the number `number`.
  Result<memory::OwnRow> own_row(const NamedArray& array, std::size_t number, std::uint64_t index,
                                 memory::RowUse use) const;

 private:
  std::vector<std::shared_ptr<const storage::BackingFile>> files_;  // one per array
  std::vector<const storage::BackingFile*> checked_;                // one per file, for the array that needs most of it
};

}  // namespace feedline::format
