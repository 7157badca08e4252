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

// The arrays of a .npy or .npz file. Arrays are memory-mapped if possible. Remote, compressed and big-endian arrays,
// and those in Fortran order, are copied to memory. The first dimension is the row index.
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

// `wanted` has the names of the arrays to open in a .npz file, or is empty for all arrays. Reads opened arrays
// completely to verify their checksums, and only the headers of all others. Fails with kConfig if a wanted array is not
// in the file, and with kStorage if the file cannot be read. Fails with kData if the file is truncated, damaged, or not
// a .npy or .npz file, or if batches cannot contain an array; the error names the file as its shard.
Result<ArrayFile> open_array_file(const storage::Storage& storage, const std::string& path,
                                  const std::vector<std::string>& wanted = {});

// These functions recognise arrays and zip archives by the first bytes of a file.
bool begins_as_npy(std::span<const std::byte> front);
bool begins_as_zip(std::span<const std::byte> front);

}  // namespace feedline::format
