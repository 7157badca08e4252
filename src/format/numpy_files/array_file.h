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

// The arrays of a .npy or .npz file: mapped where that can be, so that rows are read where they lie; in memory where
// they are behind a network, deflated, big-endian or in Fortran order. The rows go from the first extent.
struct ArrayFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::vector<NamedArray> arrays;  // of a .npy one, without a name
  // Of an archive, its members that are not opened.
  struct Other {
    std::string name;
    Result<memory::NpyHeader> header;  // or why no batch can hold it
  };
  std::vector<Other> others;
};

// wanted: names of the arrays of a .npz to open, all if it is empty; of others only the header is read, whatever they
// hold. The checksums of opened arrays are compared, for which all of them are read. kConfig: a wanted array is not in
// the file. kData: neither kind of file, truncated or damaged, or an array that no batch can hold; `shard` is set.
// kStorage: it cannot be read.
Result<ArrayFile> open_array_file(const storage::Storage& storage, const std::string& path,
                                  const std::vector<std::string>& wanted = {});

// By the first bytes of a file: an array, or a zip archive.
bool begins_as_npy(std::span<const std::byte> front);
bool begins_as_zip(std::span<const std::byte> front);

}  // namespace feedline::format
