// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files that arrays are mapped from: rows that need no copy, and an error in place of SIGBUS for a file that was
// cut.

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

// Rows of at least this size are read into batches by pread(2), whose calls then cost little more than a copy.
inline constexpr std::size_t kLargeRowBytes = std::size_t{1} << 20;
// Rows of at least this size are mapped for a function or a sample. A crop takes as long as with a copy at 1 MiB and a
// tenth of it at 16 MiB; but writing to all of a mapped row takes four times as long as copying and writing.
inline constexpr std::size_t kMappedRowBytes = std::size_t{4} << 20;

// Immutable and thread-safe.
class ArrayFiles {
 public:
  // The arrays' memory outlives it.
  explicit ArrayFiles(std::span<const NamedArray> arrays);

  // kStorage: a file is shorter than its arrays need. One look at each file.
  Result<void> check() const;
  // nullptr: the array is not in a file.
  const storage::BackingFile* of(std::size_t array) const { return files_[array].get(); }
  // See Format::own_row(). `array`, number `number` of them: its sample `index`.
  Result<memory::OwnRow> own_row(const NamedArray& array, std::size_t number, std::uint64_t index,
                                 memory::RowUse use) const;

 private:
  std::vector<std::shared_ptr<const storage::BackingFile>> files_;  // of each array
  std::vector<const storage::BackingFile*> checked_;                // of each file, the one that needs most of it
};

}  // namespace feedline::format
