// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files that back memory-mapped arrays. Provides rows without copying, and reports truncated files as errors
// instead of SIGBUS.

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

// Rows of at least this size are read into batches with pread(2). For smaller rows, the system calls would be
// expensive.
inline constexpr std::size_t kLargeRowBytes = std::size_t{1} << 20;
// Rows of at least this size are mapped for map() functions and single samples. Cropping a mapped row takes as long as
// copying the row and cropping the copy at 1 MiB, and a tenth as long at 16 MiB. Writing to an entire mapped row takes
// four times as long as copying the row first.
inline constexpr std::size_t kMappedRowBytes = std::size_t{4} << 20;

// Immutable and thread-safe.
class ArrayFiles {
 public:
  // The arrays' memory must outlive this object.
  explicit ArrayFiles(std::span<const NamedArray> arrays);

  // Checks the size of each file. Fails with kStorage if a file is too short for its arrays.
  Result<void> check() const;
  // Returns the file that backs an array, or nullptr if the array is not in a file.
  const storage::BackingFile* of(std::size_t array) const { return files_[array].get(); }
  // See Format::own_row(). Returns sample `index` of `array`, which is array number `number`.
  Result<memory::OwnRow> own_row(const NamedArray& array, std::size_t number, std::uint64_t index,
                                 memory::RowUse use) const;

 private:
  std::vector<std::shared_ptr<const storage::BackingFile>> files_;  // one per array
  std::vector<const storage::BackingFile*> checked_;                // one per file, for the array that needs most of it
};

}  // namespace feedline::format
