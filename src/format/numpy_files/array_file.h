// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "memory/npy_header.h"
#include "storage/storage.h"

namespace feedline::format {

// The arrays of a .npy or .npz file: mapped if possible, so that rows are read in place; in memory if they are remote,
// deflated, big-endian or in Fortran order. The first dimension is that of the rows.
struct ArrayFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::vector<NamedArray> arrays;  // the array of a .npy file has no name
  // members of an archive that are not opened
  struct Other {
    std::string name;
    Result<memory::NpyHeader> header;  // or the reason why no batch can hold it
  };
  std::vector<Other> others;
};

// wanted: names of the arrays of a .npz file to open, or all if empty; for other arrays only the header is read.
// Compares the checksums of opened arrays, so these are read completely. kConfig: a wanted array is not in the file.
// kData: not a .npy or .npz file, truncated, damaged, or an array that no batch can hold; `shard` is set. kStorage: the
// file cannot be read.
Result<ArrayFile> open_array_file(const storage::Storage& storage, const std::string& path,
                                  const std::vector<std::string>& wanted = {});

// Detects an array or a zip archive by the first bytes of a file.
bool begins_as_npy(std::span<const std::byte> front);
bool begins_as_zip(std::span<const std::byte> front);

}  // namespace feedline::format
