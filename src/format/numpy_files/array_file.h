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
#include "storage/storage.h"

namespace feedline::format {

// The arrays of a .npy or .npz file: mapped where that can be, so that rows are read where they lie; in memory where
// they are behind a network, deflated, big-endian or in Fortran order. The rows go from the first extent.
struct ArrayFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::vector<NamedArray> arrays;  // of a .npy one, without a name
};

// Every checksum of a .npz is compared, for which all of it is read. kData: neither, cut or damaged, or an array that
// no batch can hold; `shard` is set. kStorage: it cannot be read.
Result<ArrayFile> open_array_file(const storage::Storage& storage, const std::string& path);

// By the first bytes of a file: an array, or a zip archive.
bool begins_as_npy(std::span<const std::byte> front);
bool begins_as_zip(std::span<const std::byte> front);

}  // namespace feedline::format
